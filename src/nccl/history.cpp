#include "src/nccl/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "src/common/error.hpp"

namespace gdr::nccl {
namespace {

/// The names of the path types 0, 1, ... since a version, from the sources of the releases
/// (graph/topo.h; before 2.6 topo.h).
struct Numbers {
  int since;
  std::vector<std::string_view> words;
};

const std::vector<Numbers>& history() {
  static const std::vector<Numbers> table{
      {20300, {"PIX", "PXB", "PHB", "SOC"}},
      {20400, {"PIX", "PXB", "PHB", "NODE", "SYS"}},
      {20600, {"LOC", "NVL", "PIX", "PXB", "PHB", "SYS", "NET"}},
      {20800, {"LOC", "NVL", "NVB", "PIX", "PXB", "PHB", "SYS"}},
      {21200, {"LOC", "NVL", "NVB", "PIX", "PXB", "PXN", "PHB", "SYS"}},
      {21800, {"LOC", "NVL", "NVB", "PIX", "PXB", "PXN", "PHB", "SYS", "NET", "DIS"}},
      {22600, {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "PHB", "SYS", "NET", "DIS"}},
      {22700, {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "P2C", "PHB", "SYS", "NET", "DIS"}},
      {22705,
       {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}}};
  return table;
}

const std::vector<std::string_view>& words_of(int version) {
  const Numbers* found = &history().front();
  for (const Numbers& numbers : history())
    if (numbers.since <= version) found = &numbers;
  return found->words;
}

/// NCCL prints a bus id as one hexadecimal number: 0000:c1:00.0 as c1000.
std::string bus_number(const std::string& bus_id) {
  std::string digits;
  for (const char c : bus_id)
    if (c != ':' && c != '.') digits += c;
  const auto first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : digits.substr(first);
}

}  // namespace

std::optional<int> known_version(const std::string& version) {
  std::array<int, 3> parts{0, 0, 0};
  const char* at = version.data();
  const char* const end = at + version.size();
  std::size_t count = 0;
  while (count < parts.size()) {
    const auto [stop, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc{} || parts[count] < 0 || parts[count] > 99) break;
    ++count;
    at = stop;
    if (at == end || *at != '.') break;
    ++at;
  }
  const int number = parts[0] * 10000 + parts[1] * 100 + parts[2];
  return count < 2 || number < 20300 || number >= 23100 ? std::nullopt : std::optional(number);
}

int version_number(const std::string& version) {
  const auto number = known_version(version);
  if (!number)
    throw InputError(
        fmt::format("NCCL version \"{}\": known are {}, as in 2.18.6; the decisions of other "
                    "versions are unknown",
                    version.substr(0, 40), known_versions));
  return *number;
}

std::optional<std::string> path_word(int version, int number) {
  const auto& words = words_of(version);
  if (number < 0 || static_cast<std::size_t>(number) >= words.size()) return std::nullopt;
  return std::string(words[static_cast<std::size_t>(number)]);
}

std::optional<int> path_number(int version, PathType type) {
  const auto& words = words_of(version);
  std::string_view word = to_string(type);
  if (version < 20400 && word == "SYS") word = "SOC";
  // 2.12 to 2.17 had no name for "not connected" and used the number after the last one.
  const auto found = std::find(words.begin(), words.end(), word);
  return found != words.end() ? std::optional(static_cast<int>(found - words.begin()))
                              : std::nullopt;
}

bool strict_comparison(int version) { return version < 20600; }

std::string gdr_log_line(int version, const LogLine& line) {
  const std::string_view state = line.enabled ? "Enabled" : "Disabled";
  const auto distance = line.number ? line.number : path_number(version, line.distance);
  const auto level = path_number(version, line.level);
  if (!distance || !level || version >= 23003) return {};
  const std::string read = line.enabled ? fmt::format(", read {}", line.read ? 1 : 0) : "";
  if (version < 20400)
    return line.enabled
               ? ""
               : fmt::format(
                     "NET/IB : GPU Direct RDMA Disabled for GPU {} / HCA {} (distance {} >= {})",
                     line.gpu_dev, line.net_name, *distance, *level);
  if (version < 20500)
    return fmt::format("NET/IB : GPU Direct RDMA {} for GPU {}[{}] / HCA {} (distance {} {} {}){}",
                       state, line.gpu_dev, line.gpu_dev, line.net, *distance,
                       line.enabled ? "<" : ">=", *level, read);
  if (version < 20600)
    return fmt::format("NET/IB : GPU Direct RDMA {} for GPU {} / HCA {} (distance {} {} {}){}",
                       state, bus_number(line.gpu_bus_id), line.net, *distance,
                       line.enabled ? "<" : ">=", *level, read);
  const std::string_view sign = line.enabled ? "<=" : ">";
  if (version < 22100)
    return fmt::format("GPU Direct RDMA {} for GPU {} / HCA {} (distance {} {} {}){}", state,
                       bus_number(line.gpu_bus_id), line.net, *distance, sign, *level, read);
  const std::string mode = line.enabled && version >= 22600 ? " mode Default" : "";
  if (version < 22900) {
    const std::string gpu =
        version < 22400 ? bus_number(line.gpu_bus_id) : std::to_string(line.rank);
    return fmt::format("GPU Direct RDMA {} for GPU {} / HCA {:x} (distance {} {} {}){}{}", state,
                       gpu, line.net, *distance, sign, *level, read, mode);
  }
  return fmt::format("GPU Direct RDMA {} for GPU/0-{} (rank {}) - NET/0-{} (distance {} {} {}{}{})",
                     state, bus_number(line.gpu_bus_id), line.rank, line.net, *distance, sign,
                     *level, read, line.enabled ? ", mode Default" : "");
}

}  // namespace gdr::nccl
