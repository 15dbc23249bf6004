#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/cli/emulate_options.hpp"
#include "src/common/file.hpp"
#include "src/common/json.hpp"
#include "src/common/units.hpp"
#include "src/report/output.hpp"

namespace gdr::cli {

using namespace report;
namespace {

std::int64_t number(const json::Value* value) {
  const auto* found = value == nullptr ? nullptr : value->as<std::int64_t>();
  return found == nullptr ? 0 : *found;
}

const json::Value& member(const json::Value& object, std::string_view name) {
  static const json::Value none;
  const json::Value* found = object.find(name);
  return found == nullptr ? none : *found;
}

/// The sum over all flows that the port sends.
std::int64_t roce_payload(const json::Value& port, std::string_view which) {
  std::int64_t sum = 0;
  if (const auto* flows = member(port, "roce").as<json::Array>())
    for (const json::Value& flow : *flows) sum += number(flow.find(which));
  return sum;
}

std::vector<std::string> row_of(const json::Value& port, const std::string& name, bool sends) {
  const json::Value& link = member(port, sends ? "tx" : "rx");
  const json::Value& dropped = member(link, "dropped");
  std::int64_t others = 0;
  if (const auto* causes = dropped.as<json::Object>())
    for (const auto& [cause, count] : *causes)
      if (cause != "loss" && cause != "down") others += number(&count);
  std::vector<std::string> row{name + (sends ? ".tx" : ".rx")};
  for (const std::int64_t count :
       {number(member(link, "arrived").find("frames")),
        number(member(link, "passed").find("frames")), number(dropped.find("loss")),
        number(dropped.find("down")), others, number(link.find("duplicated")),
        number(link.find("reordered")), number(link.find("corrupted")), number(link.find("marked")),
        sends ? roce_payload(port, "payload") : 0,
        sends ? roce_payload(port, "repeated_payload") : 0})
    row.push_back(count == 0 ? "-" : std::to_string(count));
  return row;
}

}  // namespace

std::string traffic_table(const json::Value& counters) {
  std::vector<std::vector<std::string>> rows{{"link", "frames", "passed", "lost", "down",
                                              "dropped else", "duplicated", "reordered",
                                              "corrupted", "marked", "RoCE payload", "repeated"}};
  if (const auto* ports = member(counters, "ports").as<json::Array>())
    for (const json::Value& port : *ports) {
      const auto* name = member(port, "name").as<std::string>();
      for (const bool sends : {true, false})
        rows.push_back(row_of(port, name == nullptr ? "" : *name, sends));
    }
  // A column of zeros is left out.
  constexpr std::size_t always = 3;
  for (std::size_t column = rows.front().size(); column-- > always;)
    if (std::all_of(rows.begin() + 1, rows.end(),
                    [&](const auto& row) { return row[column] == "-"; }))
      for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  std::string text = table(rows);
  if (const auto* error = member(counters, "pcap_error").as<std::string>())
    text += fmt::format("the capture ends early: {}\n", *error);
  return text;
}

void report_traffic(const EmulateOptions& options, const json::Value& counters) {
  if (!options.counters.empty()) write_file(options.counters, json::dump(counters) + "\n");
  if (options.traffic || !options.faults.empty()) fmt::print(stderr, "{}", traffic_table(counters));
  else if (const auto* error = member(counters, "pcap_error").as<std::string>())
    say("the capture ends early: " + *error);
}

}  // namespace gdr::cli
