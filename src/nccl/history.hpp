#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/nccl/rules.hpp"

namespace gdr::nccl {

// How every NCCL version since 2.3 writes its log: the numbers of path types and the wording of the
// lines about GPUDirect RDMA.

/// The versions whose sources were read. Releases have changed the numbers, so newer ones may
/// differ again.
inline constexpr std::string_view known_versions = "2.3 to 2.30";
/// 21806 for "2.18.6"; nullopt if it is not a known version.
std::optional<int> known_version(const std::string& version);
/// The same, but throws InputError instead.
int version_number(const std::string& version);

/// The name of a path type's number in this version: "SYS" for 7 in 2.12 to 2.25. The old name of
/// SYS is SOC. nullopt: the version has no such number.
std::optional<std::string> path_word(int version, int number);
/// The number of a path type in this version; nullopt if it has none.
std::optional<int> path_number(int version, PathType type);

/// True if the log compares "distance < level" (up to 2.5) and not "<=".
bool strict_comparison(int version);

/// What NCCL prints about a GPU and a NIC, which each version names by bus id, rank or device.
struct LogLine {
  std::string gpu_bus_id;  ///< "0000:c1:00.0"
  int rank = 0;
  int gpu_dev = 0;
  int net = 0;
  std::string net_name;  ///< mlx5_0
  PathType distance = PathType::sys;
  std::optional<int> number;  ///< distance without a PathType: NODE of 2.4 and 2.5
  PathType level = PathType::pxb;
  bool enabled = false;
  bool read = false;
};
/// The line that a version prints, without the prefix "host:pid:tid [dev] NCCL INFO "; empty if it
/// prints none (2.3 when enabled, and releases of 2.30).
std::string gdr_log_line(int version, const LogLine& line);

}  // namespace gdr::nccl
