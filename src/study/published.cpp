#include "src/study/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "src/common/error.hpp"
#include "src/study/question_json.hpp"

namespace gdr::study {
namespace {

constexpr std::array<std::string_view, 7> metric_names{
    "bandwidth",  "bandwidth-each-way", "bandwidth-to-the-end", "latency",
    "completion", "round-trip",         "loaded-latency"};

/// Runs `parse` on the node's text; its errors get the node's place.
template <typename Parse>
auto parsed(const json::Node& node, Parse parse) {
  try {
    return parse(node.string());
  } catch (const InputError& error) {
    node.fail(error.what());
  }
}

std::vector<Setting> read_settings(const json::Node& list) {
  std::vector<Setting> settings;
  for (const json::Node& node : list.array())
    settings.push_back(parsed(node, [](const std::string& text) { return parse_setting(text); }));
  return settings;
}

PublishedCase::Flow read_flow(json::ObjectReader& object) {
  PublishedCase::Flow flow{object.required("from").string(), object.required("to").string(), {}};
  if (const auto via = object.optional("via"))
    for (const json::Node& nic : via->array()) flow.via.push_back(nic.string());
  return flow;
}

void read_flows(json::ObjectReader& object, PublishedCase& published) {
  const auto flows = object.optional("flows");
  if (!flows) {
    published.flows.push_back(read_flow(object));
    return;
  }
  for (const json::Node& node : flows->array()) {
    json::ObjectReader flow(node);
    published.flows.push_back(read_flow(flow));
    flow.finish();
  }
  if (published.flows.empty()) flows->fail("\"flows\" is empty; list at least one");
}

/// What the cases of a file share.
struct Shared {
  PublishedCase base;
  std::string topologies;
};

/// A sentence on why the metric cannot be computed for these flows; empty: it can.
std::string contradiction(const PublishedCase& published) {
  const bool alone = published.metric == Metric::latency ||
                     published.metric == Metric::completion ||
                     published.metric == Metric::round_trip;
  if (alone && published.flows.size() > 1)
    return fmt::format("the metric {} is of one message, and there are {} flows",
                       to_string(published.metric), published.flows.size());
  if (published.metric == Metric::bandwidth_to_the_end && published.options.bidirectional)
    return "bandwidth-to-the-end takes each direction as a flow of its own, not \"bidirectional\"";
  if (published.metric == Metric::bandwidth_each_way && !published.options.bidirectional)
    return "bandwidth-each-way needs \"bidirectional\": true";
  return {};
}

PublishedCase read_case(const json::Node& node, const Shared& shared) {
  json::ObjectReader object(node);
  PublishedCase published = shared.base;
  published.name = object.required("name").string();
  published.category = object.required("category").name();
  static constexpr std::array<std::string_view, 2> uses{"calibration", "validation"};
  published.calibration = object.required("use").choice(uses) == 0;
  if (const auto n = object.optional("where")) published.where = n->string();
  if (const auto n = object.optional("note")) (void)n->string();
  if (const auto n = object.optional("topology"))
    published.topology = shared.topologies + "/" + n->string() + ".json";
  if (published.topology.empty())
    object.node().fail("\"topology\" is missing here and in the file");
  if (const auto n = object.optional("set"))
    for (Setting& setting : read_settings(*n)) published.settings.push_back(std::move(setting));
  read_flows(object, published);
  read_transfer(object, published.transfer);
  read_options(object, published.options);
  published.metric = static_cast<Metric>(object.required("metric").choice(metric_names));
  const json::Node measured = object.required("measured");
  if (const std::string problem = contradiction(published); !problem.empty())
    object.node().fail(problem);
  published.measured = is_bandwidth(published.metric) ? measured.bandwidth().gigabytes_per_second()
                                                      : measured.duration().us();
  if (!(published.measured > 0)) measured.fail(json::describe(measured.value()), "more than 0");
  object.finish();
  return published;
}

void read_file(const std::string& file, const std::string& topologies, PublishedCases& all) {
  const json::Value document = json::parse_file(file);
  json::ObjectReader object(json::Node(document, file));
  object.expect_format();
  Shared shared{{}, topologies};
  shared.base.file = file;
  shared.base.source = object.required("source").string();
  shared.base.platform = object.required("platform").name();
  if (const auto n = object.optional("note")) (void)n->string();
  if (const auto n = object.optional("source_mark")) shared.base.source_mark = n->string();
  if (const auto n = object.optional("topology"))
    shared.base.topology = topologies + "/" + n->string() + ".json";
  if (const auto n = object.optional("set")) shared.base.settings = read_settings(*n);
  for (const json::Node& node : object.required("cases").array())
    all.cases.push_back(read_case(node, shared));
  if (const auto list = object.optional("left_out"))
    for (const json::Node& node : list->array()) {
      json::ObjectReader left(node);
      all.left_out.push_back(
          {left.required("name").string(), file, left.required("reason").string()});
      left.finish();
    }
  object.finish();
}

std::vector<std::string> files_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool is_bandwidth(Metric metric) { return metric <= Metric::bandwidth_to_the_end; }
std::string_view to_string(Metric metric) {
  return metric_names.at(static_cast<std::size_t>(metric));
}

PublishedCases load_published(const std::vector<std::string>& paths,
                              const std::string& topologies) {
  PublishedCases all;
  for (const std::string& path : paths)
    for (const std::string& file : files_of(path)) read_file(file, topologies, all);
  std::set<std::string> names;
  for (const PublishedCase& one : all.cases)
    if (!names.insert(one.name).second)
      throw InputError(
          fmt::format("{}: the case {} is there twice; give it another name", one.file, one.name));
  return all;
}

}  // namespace gdr::study
