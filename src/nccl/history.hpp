#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/nccl/rules.hpp"

namespace gdr::nccl {

// What NCCL's logs mean, for every version since 2.3: the numbers of path types and the wording of
// the lines about GPUDirect RDMA.

/// Versions whose sources were read. Numbers moved with releases, so that a newer one may mean
/// other things by them.
inline constexpr std::string_view known_versions = "2.3 to 2.30";
/// 2.18.6 as 21806; nullopt: no version, or none of those.
std::optional<int> known_version(const std::string& version);
/// The same; throws InputError where that is nullopt.
int version_number(const std::string& version);

/// The word for a path type's number in a log of this version: "SYS" for 7 in 2.12 to 2.25. SOC was
/// the old word for SYS; nullopt: the version has no such number.
std::optional<std::string> path_word(int version, int number);
/// The number of a path type in this version; nullopt: it had none.
std::optional<int> path_number(int version, PathType type);

/// True where the comparison in the log is "distance < level" (up to 2.5) and not "<=".
bool strict_comparison(int version);

/// What is printed for a GPU and a NIC. `gpu` and `nic` are written as this version does: busid,
/// rank, device.
struct LogLine {
  std::string gpu_bus_id;  ///< "0000:c1:00.0"
  int rank = 0;
  int gpu_dev = 0;
  int net = 0;
  std::string net_name;  ///< mlx5_0
  PathType distance = PathType::sys;
  std::optional<int>
      number;  ///< of the distance, where its word is none of PathType: NODE of 2.4 and 2.5
  PathType level = PathType::pxb;
  bool enabled = false;
  bool read = false;
};
/// The line of a version, without the prefix "host:pid:tid [dev] NCCL INFO "; empty where it prints
/// none (2.3 when it is enabled, and releases of 2.30).
std::string gdr_log_line(int version, const LogLine& line);

}  // namespace gdr::nccl
