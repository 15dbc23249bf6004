#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/common/pcie_link.hpp"
#include "src/common/units.hpp"
#include "src/topology/acs.hpp"

namespace gdr {

// A topology is plain data: what is wired to what, how it is configured, what the software reports.
// std::nullopt and empty strings mean "unknown"; nothing here is a guess. The JSON form uses the
// same names (docs/topology.md).

/// An element of an NCCL topology XML file, stored verbatim so that export writes what import read.
struct NcclElement {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;
  bool operator==(const NcclElement&) const = default;
};

enum class DeviceKind { host_bridge, pci_switch, gpu, nic, nvme, nvswitch, other };

/// The name in the JSON form: "host-bridge", "switch", "gpu", "nic", "nvme", "nvswitch", "other".
std::string_view to_string(DeviceKind kind);

enum class LinkLayer { infiniband, ethernet };
std::string_view to_string(LinkLayer layer);

/// error: something does not work; warning: it costs bandwidth or breaks ordering; note: everything
/// else.
enum class Severity { error, warning, note };
/// "error", "warning", "note"
std::string_view to_string(Severity severity);

/// How far two PCIe devices of one host are from each other, in nvidia-smi's terms (`nvidia-smi
/// topo -m`): PIX at most one switch, PXB several switches, PHB one host bridge, NODE two host
/// bridges of one NUMA node, SYS two NUMA nodes. phb_or_node: one NUMA node, host bridges unknown;
/// node_or_sys: two host bridges, NUMA nodes unknown; unknown: the topology does not say how the
/// devices are connected.
enum class Distance { self, pix, pxb, phb, phb_or_node, node, node_or_sys, sys, unknown, none };
/// "X", "PIX", "PXB", "PHB", "PHB/NODE", "NODE", "NODE/SYS", "SYS", "unknown", "none".
std::string_view to_string(Distance distance);

/// A device below a NUMA node, a host bridge or a switch of its host.
struct Device {
  std::string name;  ///< unique in its host: gpu0, nic0, nvme0, sw0, hb0
  DeviceKind kind = DeviceKind::other;
  std::string model;  ///< file name in the folder of its kind in models/; empty: generic
  std::string under;  ///< the device or NUMA node directly above it
  std::optional<bool>
      place_known;  ///< false: `under` is a NUMA node and the devices in between are unknown

  std::optional<PcieLink> link;  ///< speed of the link to the port above, under load
  std::optional<PcieLink>
      link_capability;     ///< what both ends support, when that is known to be more
  std::optional<Acs> acs;  ///< control bits of the downstream port above this device
  std::optional<Bytes> max_payload;
  std::optional<Bytes> max_read_request;
  std::optional<bool> relaxed_ordering;
  std::optional<bool> ats;
  std::string address;  ///< domain:bus:device.function
  std::string pci_id;   ///< vendor:device

  std::optional<Bytes> bar_size;  ///< GPU: size of the BAR that maps device memory on this machine
  std::optional<bool> gdr;  ///< GPU, NIC: the driver (or plugin) reports support for GPUDirect RDMA

  std::optional<int> ports;             ///< NIC: network ports in use
  std::optional<Bandwidth> port_rate;   ///< NIC: speed of one port
  std::optional<LinkLayer> link_layer;  ///< NIC
  std::string rdma_device;              ///< NIC: mlx5_0
  std::optional<int> gid_type;          ///< NIC, Ethernet: RoCE version of the GID in use, 1 or 2
  std::optional<bool>
      lossless;  ///< NIC, Ethernet: PFC or an equivalent is set up for the RDMA traffic

  std::vector<NcclElement> nccl;  ///< its elements in an NCCL file: pci, gpu, net...
  bool operator==(const Device&) const = default;
};

struct Socket {
  std::string name;   ///< cpu0
  std::string model;  ///< file name in models/cpu; empty: generic
  bool operator==(const Socket&) const = default;
};

/// A memory domain of a socket; NCCL calls it "cpu".
struct NumaNode {
  std::string name;    ///< numa0
  std::string socket;  ///< cpu0
  std::optional<bool>
      known;  ///< false: a stand-in for unknown nodes; devices below it may be on any node
  std::vector<NcclElement> nccl;
  bool operator==(const NumaNode&) const = default;
};

/// NVLink, xGMI or C2C between two GPUs, a GPU and an NVSwitch, or a GPU and a NUMA node.
struct NvLink {
  std::string from;   ///< a GPU
  std::string to;     ///< a GPU, an NVSwitch or a NUMA node of the host; empty: an NVSwitch that is
                      ///< not visible to the host
  int count = 1;      ///< links, counted once for both directions
  std::string model;  ///< file name in models/nvlink; empty: the generation of the GPU's model
  std::vector<NcclElement> nccl;
  bool operator==(const NvLink&) const = default;
};

enum class IommuMode { off, passthrough, translate };
std::string_view to_string(IommuMode mode);

/// Facts about a host's software that decide whether GPUDirect works.
struct Software {
  std::string kernel;  ///< "5.15"
  std::optional<IommuMode> iommu;
  std::optional<Bytes>
      iommu_page_size;  ///< page size of DMA mappings when the IOMMU translates: 4 KiB or 2 MiB
  std::optional<bool> nvidia_peermem;       ///< the peer-memory module is loaded
  std::optional<bool> open_kernel_modules;  ///< NVIDIA's open driver, which dma-buf export needs
  std::string cuda;                         ///< "12.2"
  std::string nccl_version;                 ///< "2.18.6"
  std::string nccl_net_gdr_level;           ///< value of NCCL_NET_GDR_LEVEL, when set
  bool operator==(const Software&) const = default;
};

/// A distance that a tool stated for two devices whose tree is unknown: pix, pxb, phb, node or sys.
struct StatedDistance {
  std::string from;
  std::string to;
  Distance distance = Distance::unknown;
  bool operator==(const StatedDistance&) const = default;
};

/// An observation of an import that fits no other field, such as sources that contradict each other
/// or a BAR without an address.
struct Remark {
  std::string rule;  ///< named as in a finding: "matrix-contradicts-numa"
  Severity severity = Severity::note;
  std::string where;    ///< a device or "host"
  std::string message;  ///< one sentence
  std::string remedy;   ///< one sentence
  bool operator==(const Remark&) const = default;
};

struct Host {
  std::string name;  ///< h0
  std::optional<bool> virtual_machine;
  std::optional<bool> sockets_known;  ///< false: it is unknown which NUMA nodes share a socket, and
                                      ///< each has a socket of its own
  Software software;
  std::vector<Socket> sockets;
  std::vector<NumaNode> numa_nodes;
  std::vector<Device> devices;
  std::vector<NvLink> nvlinks;
  std::vector<StatedDistance> distances;
  std::vector<Remark> remarks;
  bool operator==(const Host&) const = default;
};

/// The network that joins the NICs of all hosts: one non-blocking fabric.
struct Fabric {
  std::string model;            ///< file name in models/fabric
  std::optional<Bytes> mtu;     ///< RDMA path MTU, if it differs from the model's
  std::optional<int> switches;  ///< switches between two hosts (absent: 1; 0: a cable)
  bool operator==(const Fabric&) const = default;
};

/// How software stages GPU memory through host memory: a ring of bounce buffers.
struct Staging {
  std::optional<Bytes> chunk;  ///< size of one bounce buffer
  std::optional<int> depth;    ///< number of bounce buffers of a transfer
  bool operator==(const Staging&) const = default;
};

struct Topology {
  std::string name;
  std::string description;
  std::vector<std::string> sources;
  std::vector<Host> hosts;
  std::optional<Fabric> fabric;
  std::optional<Staging> staging;
  std::vector<NcclElement> nccl;  ///< the system element
  bool operator==(const Topology&) const = default;
};

/// HOST/DEVICE of a topology. Indices stay valid while the topology is not changed.
struct DeviceId {
  std::size_t host = 0;
  std::size_t device = 0;
  auto operator<=>(const DeviceId&) const = default;
};

inline const Device& get(const Topology& topology, DeviceId id) {
  return topology.hosts.at(id.host).devices.at(id.device);
}
/// "h0/gpu0"
std::string label(const Topology& topology, DeviceId id);
/// Resolves "h0/gpu0", or "gpu0" if the topology has one host. Throws InputError that lists the
/// existing names.
DeviceId find_device(const Topology& topology, std::string_view text);
/// All devices of a kind, host by host in file order.
std::vector<DeviceId> devices_of_kind(const Topology& topology, DeviceKind kind);
/// Index in host.devices, or nullopt.
std::optional<std::size_t> device_index(const Host& host, std::string_view name);
std::optional<std::size_t> numa_index(const Host& host, std::string_view name);
std::optional<std::size_t> socket_index(const Host& host, std::string_view name);

}  // namespace gdr
