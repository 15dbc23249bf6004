#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr::observed {

// What listings of a machine say, before it becomes a topology. Every field may be missing; nothing
// is guessed here.

struct Bar {
  int region = 0;
  std::optional<Bytes> size;
  bool assigned = true;  ///< false: the system gave it no address
  bool operator==(const Bar&) const = default;
};

/// PCI Express capability, device/port type.
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
  std::string address;   ///< "0000:c1:00.0"; empty where a cut tree does not show its bus
  std::string root_bus;  ///< "0000:c0", the bus at the top of its tree; empty: not said
  std::optional<std::size_t> above;  ///< the bridge (index) that a tree shows above it
  std::optional<int> secondary;      ///< a bridge's buses
  std::optional<int> subordinate;
  std::string pci_id;                 ///< "10de:2330"
  std::optional<unsigned> pci_class;  ///< as sysfs has it: 0x030200; the last byte is 0 where the
                                      ///< source has four digits
  std::string text;                   ///< the words of lspci, without ids
  std::optional<PortType> port_type;
  std::optional<int> numa_node;  ///< -1: the firmware does not say
  std::optional<PcieLink> link;  ///< as it ran at that moment
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
      rdma;  ///< by name: the NIC's device, by legend or by its own name; else empty
  std::map<std::pair<std::size_t, std::size_t>, std::string> cells;  ///< "PIX", "NV12"; row, column
  std::vector<std::string> numa;  ///< by name: "0", "0-1"; empty: none
  bool operator==(const Matrix&) const = default;
};

/// ACSCtl lines with the same bits, of ports that no device is shown below: as grep leaves them,
/// without their ports, or with them.
struct LooseAcs {
  Acs bits;
  std::size_t count = 0;
  std::vector<std::string> ports;  ///< addresses; empty: not said
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
  std::vector<NvLink> nvlinks;       ///< between functions by address
  std::vector<Remark> remarks;       ///< `where` is an address, or "host"
  std::vector<std::string> formats;  ///< "lspci -tv"
  bool operator==(const Machine&) const = default;
};

/// Adds what `other` says of the same machine. Contradictions become remarks; what came first
/// stands.
void merge(Machine& machine, const Machine& other);

/// Finds the bridge above each function by bus numbers where no tree showed it, and the root bus
/// above that.
void resolve_tree(Machine& machine);

/// The function at an address, or nullptr.
Function* find(Machine& machine, const std::string& address);
const Function* find(const Machine& machine, const std::string& address);

/// "c1:00.0" and "0000:c1:00.0" as "0000:c1:00.0"; empty when it is no address.
std::string full_address(std::string_view text);
/// Bus of an address: 0xc1; nullopt when there is none.
std::optional<int> bus_of(const std::string& address);
/// "0000:c1"
std::string bus_text(const std::string& address);

}  // namespace gdr::observed
