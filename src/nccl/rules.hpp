#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gdr::nccl {

/// NCCL's types of paths between two nodes of its graph, nearest first.
enum class PathType { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, dis };

/// "LOC", "NVL"...
std::string_view to_string(PathType type);

/// NCCL's settings; empty and nullopt: not set.
struct Settings {
  std::string version = "2.28.9";
  std::string net_gdr_level;        ///< NCCL_NET_GDR_LEVEL: a path type or 0 to 5
  std::string p2p_level;            ///< NCCL_P2P_LEVEL: the same
  std::optional<int> net_gdr_read;  ///< NCCL_NET_GDR_READ
  std::optional<bool> net_gdr_c2c;  ///< NCCL_NET_GDR_C2C
  bool pxn = true;                  ///< false: NCCL_PXN_DISABLE=1
};

/// The differences between versions that affect paths, GPUDirect RDMA and the choice of NICs, from
/// the sources of the releases (https://github.com/NVIDIA/nccl, src/graph).
struct Rules {
  bool broadcom_gen5 =
      false;  ///< 2.20: merges the two levels of Gen5 switches, not only those of Gen4
  bool broadcom_same_id =
      false;                  ///< up to 2.19: merges them only if both have the same subsystem id
  bool amd_limited = false;   ///< 2.19: limits traffic between AMD NUMA nodes
  bool new_intel = false;     ///< 2.26: Sapphire and Emerald Rapids have numbers of their own
  float sm90_nvlink = 20.0F;  ///< GB/s per link
  float sm100_nvlink = 20.0F;
  bool c2c = false;              ///< 2.19: reads c2c elements
  bool c2c_is_own_type = false;  ///< 2.26: C2C no longer counts as NVLink
  bool p2c = false;              ///< 2.27: C2C to the CPU plus PCIe to the NIC is a type of its own
  bool p2c_nearest_only = false;  ///< 2.29
  bool merge_functions = false;   ///< up to 2.23: a NIC's functions form one NIC
  bool type_before_hops = false;  ///< 2.30.7: a better type wins over fewer hops
  bool device_modulo =
      false;  ///< 2.30.7: chooses NICs by dev modulo the number of GPUs that share them
  bool relay_needs_gdr = false;  ///< 2.30
  bool relay_over_c2c = false;   ///< 2.27.5
  bool divert_always =
      false;  ///< up to 2.20: rewrites PHB and SYS paths as well when GPUDirect RDMA is off
  bool reads_from_sm80 = false;     ///< 2.19: sm 80 and newer may always read
  bool p2p_over_cpu = false;        ///< up to 2.22: by default, except on Intel, ARM and Zhaoxin
  bool any_gpu_is_local = false;    ///< up to 2.18: asks every GPU which NIC it uses
  bool gdr_c2c = false;             ///< default of NCCL_NET_GDR_C2C
  bool level_includes_p2c = false;  ///< 2.29: NCCL_NET_GDR_C2C makes P2C the default level
  int max_channels = 32;
};

/// False when the text is not a version or is older than 2.12 (paths before PXN are not modelled).
bool is_modelled(const std::string& version);
/// Throws InputError for a version that is not modelled.
Rules rules_of(const std::string& version);

/// A level as NCCL parses it; nullopt when it is unset or not understood, which NCCL treats alike.
std::optional<PathType> parse_level(std::string_view text);

/// True when paths over C2C are allowed at any level.
bool uses_gdr_over_c2c(const Rules& rules, const Settings& settings);
/// The farthest path type on which GPUDirect RDMA is used.
PathType gdr_level(const Rules& rules, const Settings& settings);

}  // namespace gdr::nccl
