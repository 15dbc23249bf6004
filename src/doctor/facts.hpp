#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/common/units.hpp"
#include "src/import/machine.hpp"
#include "src/topology/topology.hpp"

namespace gdr::doctor {

// What the checks need to know about a host beyond its topology. Empty and nullopt mean unknown.

struct Gid {
  std::string device;  ///< mlx5_0
  int port = 1;
  int index = 0;
  std::string type;  ///< "v1", "v2", "IB"; empty: its file could not be read (an entry of another
                     ///< namespace)
  std::string network;  ///< interface
  std::string address;  ///< IPv4 or the GID
};

/// The flow-control settings of an interface, as mlnx_qos or dcb prints them.
struct FlowControl {
  std::string network;
  std::vector<bool> enabled;  ///< PFC by priority
  std::string trust;          ///< "pcp" or "dscp"
};

struct Facts {
  std::string kernel;
  std::optional<std::set<std::string>> modules;  ///< all loaded modules
  std::set<std::string> modules_seen;            ///< some of the loaded modules
  std::optional<bool> memory_peers;              ///< /sys/kernel/mm/memory_peers/nv_mem exists
  std::optional<bool> peer_client_symbol;  ///< the kernel exports ib_register_peer_memory_client
  std::optional<bool> open_modules;
  std::string cuda;
  std::string nccl;
  std::string gpu_name;  ///< as nvidia-smi -L prints it
  std::string ofed;      ///< "MLNX_OFED_LINUX-5.8-1.0.1.1"
  std::optional<IommuMode> iommu;

  std::set<std::string> rdma_devices;         ///< /sys/class/infiniband
  std::map<std::string, std::string> layers;  ///< link layer by device
  std::map<std::string, std::string>
      networks;  ///< interface by RDMA device, from ibdev2netdev or sysfs
  std::vector<Gid> gids;
  bool gids_listed = false;
  bool networks_listed = false;
  std::vector<FlowControl> flow_control;
  std::optional<bool> ecn;
  std::map<std::string, std::uint64_t> counters;  ///< out_of_sequence, rx_prio0_bytes...

  std::optional<std::uint64_t> locked_memory_kib;  ///< ulimit -l
  bool locked_memory_unlimited = false;
  std::optional<bool> container;
  std::optional<Duration> round_trip;           ///< measured by ping
  std::map<std::string, std::string> settings;  ///< NCCL_IB_GID_INDEX...
  std::string write_ordering;                   ///< mlxconfig PCI_WR_ORDERING
  std::optional<bool> rxe_module;               ///< rdma_rxe can be loaded
  std::string gds_nvme;                         ///< gdscheck: "Supported", "Unsupported"
  std::vector<std::pair<std::string, std::string>> mounts;  ///< ext4 and xfs: mount point, options
  std::vector<std::string> messages;  ///< error lines of dmesg, tools and libraries
  bool root = false;
  std::map<std::string, std::string> missing;  ///< what a capture could not read, and why
};

/// Reads facts from captures, listings, logs and pasted text; ignores everything else.
Facts read_facts(const std::vector<NamedText>& inputs);

/// True if a message contains both texts.
bool says(const Facts& facts, std::string_view a, std::string_view b = {});

}  // namespace gdr::doctor
