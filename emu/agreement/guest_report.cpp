#include "emu/agreement/guest_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "src/common/error.hpp"
#include "src/common/json.hpp"

namespace gdr::agreement {
namespace {

constexpr std::string_view before_line = "gdr-counts before";
constexpr std::string_view transfer_line = "gdr-transfer";
constexpr std::string_view program_line = "gdr-program";
constexpr std::string_view after_line = "gdr-counts after";

/// The lines that separate the parts of the output.
bool is_mark(std::string_view line) {
  return line == before_line || line == transfer_line || line == program_line || line == after_line;
}

/// For each GPU number, the counts by name.
using Counts = std::map<unsigned, std::map<std::string, std::uint64_t, std::less<>>>;

/// "/sys/class/misc/gdr-gpu0/counts:nic_read 17"
void take_count(std::string_view line, Counts& counts) {
  constexpr std::string_view folder = "/sys/class/misc/gdr-gpu";
  const auto colon = line.find("/counts:");
  const auto space = line.rfind(' ');
  if (!line.starts_with(folder) || colon == std::string_view::npos ||
      space == std::string_view::npos || space < colon)
    return;
  unsigned gpu = 0;
  std::uint64_t value = 0;
  std::from_chars(line.data() + folder.size(), line.data() + colon, gpu);
  std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
  const std::size_t name = colon + std::string_view("/counts:").size();
  counts[gpu][std::string(line.substr(name, space - name))] = value;
}

/// How much a count has grown. Throws InputError when the module does not have it.
Bytes grown(const Counts& before, const Counts& after, unsigned gpu, std::string_view name) {
  const auto value = [&](const Counts& counts) {
    const auto device = counts.find(gpu);
    if (device == counts.end())
      throw InputError(fmt::format("no counts of gpu{} in the guest's output", gpu));
    const auto count = device->second.find(name);
    if (count == device->second.end())
      throw InputError(fmt::format("no count {} of gpu{} in the guest's output", name, gpu));
    return count->second;
  };
  return {value(after) - value(before)};
}

ModuleBytes module_bytes(const Counts& before, const Counts& after, unsigned gpu) {
  const auto of = [&](unsigned device, std::string_view name) {
    return grown(before, after, device, name);
  };
  ModuleBytes bytes{of(gpu, "cpu_read"),
                    of(gpu, "cpu_written"),
                    of(gpu, "nic_read"),
                    of(gpu, "nic_written"),
                    of(gpu, "host_read"),
                    of(gpu, "host_written"),
                    of(gpu, "nic_read_again") + of(gpu, "host_read_again"),
                    {}};
  for (const auto& [other, counts] : after)
    if (other != gpu)
      for (const char* name :
           {"cpu_read", "cpu_written", "nic_read", "nic_read_again", "nic_written"})
        bytes.other_gpus = bytes.other_gpus + of(other, name);
  return bytes;
}

ProcessBytes process_bytes(const json::Value& document) {
  const json::Value* moved = document.find("moved_bytes");
  const auto of = [&](std::string_view name) {
    const json::Value* member = moved == nullptr ? nullptr : moved->find(name);
    const auto* value = member == nullptr ? nullptr : member->as<std::int64_t>();
    if (value == nullptr)
      throw InputError(
          fmt::format("no \"moved_bytes\" with \"{}\" in what gdr transfer printed", name));
    return Bytes{static_cast<std::uint64_t>(*value)};
  };
  return {of("copy_engine_out"),
          of("copy_engine_in"),
          of("copy_engine_within"),
          of("cpu"),
          of("rdma"),
          of("bounce_out"),
          of("bounce_in"),
          of("socket_out"),
          of("socket_in")};
}

}  // namespace

std::string guest_command(const GuestRun& run) {
  const std::string counts = "grep . /sys/class/misc/gdr-gpu*/counts /dev/null";
  // An unfinished last line of the program must not swallow ours.
  if (!run.program.empty())
    return fmt::format("echo {}; {}; echo {}; ({}\n) || exit; echo; echo {}; {}", before_line,
                       counts, program_line, run.program, after_line, counts);
  std::string transfer = fmt::format(
      "{} transfer --memory bar:{} --device rxe{} --path {} --format json --timeout 19 --limit "
      "10min",
      run.tool, run.gpu, run.nic, run.path);
  if (!run.server.empty())
    transfer +=
        fmt::format(" --operation {} --size {}B --iterations 1 --depth 1 --connect-limit 10min",
                    run.operation, run.size.count);
  if (!run.more.empty()) transfer += " " + run.more;
  if (!run.server.empty()) transfer += " " + run.server;
  return fmt::format("echo {}; {}; echo {}; {} || exit; echo {}; {}", before_line, counts,
                     transfer_line, transfer, after_line, counts);
}

bool is_report_line(std::string_view line) {
  return is_mark(line) || line.starts_with("/sys/class/misc/gdr-gpu");
}

GuestReport read_report(const std::vector<std::string>& lines, unsigned gpu) {
  Counts before;
  Counts after;
  std::string document;
  std::string_view part;
  bool own = false;
  for (const std::string& line : lines) {
    if (is_mark(line)) part = line;
    own = own || part == program_line;
    if (is_mark(line)) continue;
    if (part == before_line) take_count(line, before);
    else if (part == transfer_line) document += line + "\n";
    else if (part == after_line) take_count(line, after);
  }
  if (part != after_line) throw InputError("the guest's output ends early");
  if (own) return {std::nullopt, module_bytes(before, after, gpu), ""};
  const json::Value transfer = json::parse(document, "what gdr transfer printed");
  const json::Value* path = transfer.find("path");
  GuestReport report{process_bytes(transfer), module_bytes(before, after, gpu), ""};
  if (path != nullptr && path->as<std::string>() != nullptr) report.path = *path->as<std::string>();
  return report;
}

}  // namespace gdr::agreement
