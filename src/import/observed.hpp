#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr::observed {

// What listings of a machine say, before it becomes a topology. Every field may be unset; nothing
// here is a guess.

struct Bar {
  int region = 0;
  std::optional<Bytes> size;
  bool assigned = true;  ///< false: the system assigned no address
  bool operator==(const Bar&) const = default;
};

/// Device/port type of the PCI Express capability.
enum class PortType {
  endpoint = 0,
  legacy_endpoint = 1,
  root = 4,
  upstream = 5,
  downstream = 6,
  integrated = 9
};

/// A PCI function.
struct Function {
  std::string address;               ///< "0000:c1:00.0"; empty if a cut tree does not show its bus
  std::string root_bus;              ///< "0000:c0", the bus at the top of its tree; empty: unknown
  std::optional<std::size_t> above;  ///< index of the bridge that a tree shows above it
  std::optional<int> secondary;      ///< bridge: the buses below it
  std::optional<int> subordinate;
  std::string pci_id;  ///< "10de:2330"
  std::optional<unsigned>
      pci_class;     ///< as in sysfs: 0x030200; the last byte is 0 if the source has four digits
  std::string text;  ///< lspci's text, without ids
  std::optional<PortType> port_type;
  std::optional<int> numa_node;  ///< -1: the firmware does not report it
  std::optional<PcieLink> link;  ///< at the time of the listing
  std::optional<PcieLink> link_capability;
  std::optional<Acs> acs;  ///< the function's own control register
  bool hidden = false;     ///< "access denied": capabilities could not be read
  bool no_acs = false;     ///< its whole extended configuration space was read, and it has no ACS
  std::optional<Bytes> max_payload;
  std::optional<Bytes> max_read_request;
  std::optional<bool> relaxed_ordering;
  std::optional<bool> ats;
  std::optional<int> iommu_group;
  std::vector<Bar> bars;
  std::vector<std::string> networks;  ///< interfaces
  std::string rdma_device;            ///< mlx5_0
  std::optional<int> rdma_ports;
  std::optional<Bandwidth> port_rate;
  std::optional<LinkLayer> link_layer;
  std::string driver;
  bool operator==(const Function&) const = default;
};

struct NumaNode {
  int id = 0;
  std::optional<int> package;
  bool operator==(const NumaNode&) const = default;
};

struct Processor {
  std::string vendor;  ///< "GenuineIntel"
  std::optional<int> family;
  std::optional<int> model;
  std::string name;
  std::optional<int> packages;
  std::optional<int> numa_nodes;
  bool operator==(const Processor&) const = default;
};

/// The table of `nvidia-smi topo`.
struct Matrix {
  std::vector<std::string> names;  ///< "GPU0", "NIC0", "mlx5_0"
  std::vector<std::string>
      rdma;  ///< RDMA device of each name, by the legend or the name itself; else empty
  std::map<std::pair<std::size_t, std::size_t>, std::string> cells;  ///< "PIX", "NV12"; row, column
  std::vector<std::string> numa;  ///< node of each name: "0", "0-1"; empty: none
  bool operator==(const Matrix&) const = default;
};

/// ACSCtl lines with the same bits, for ports without a device below: as grep extracts them, with
/// or without their ports.
struct LooseAcs {
  Acs bits;
  std::size_t count = 0;
  std::vector<std::string> ports;  ///< addresses; empty: unknown
  bool operator==(const LooseAcs&) const = default;
};

struct Machine {
  std::vector<Function> functions;
  std::vector<NumaNode> numa_nodes;
  Processor processor;
  Software software;
  std::optional<bool> virtual_machine;
  std::optional<Matrix> matrix;
  std::vector<LooseAcs> loose_acs;
  std::vector<NvLink> nvlinks;       ///< between functions, which are named by address
  std::vector<Remark> remarks;       ///< `where` is an address, or "host"
  std::vector<std::string> formats;  ///< "lspci -tv"
  bool operator==(const Machine&) const = default;
};

/// Adds what `other` says about the same machine. Contradictions become remarks; the first value
/// wins.
void merge(Machine& machine, const Machine& other);

/// Finds the bridge above each function by bus numbers if no tree showed it, and then its root bus.
void resolve_tree(Machine& machine);

/// The function at an address, or nullptr.
Function* find(Machine& machine, const std::string& address);
const Function* find(const Machine& machine, const std::string& address);

/// "0000:c1:00.0" for "c1:00.0" and "0000:c1:00.0"; empty for anything else.
std::string full_address(std::string_view text);
/// The bus of an address (0xc1); nullopt if the address is empty.
std::optional<int> bus_of(const std::string& address);
/// "0000:c1"
std::string bus_text(const std::string& address);

}  // namespace gdr::observed
