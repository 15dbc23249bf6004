#include "src/topology/load_distances.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gdr {

using json::Node;
using json::ObjectReader;

StatedDistance read_stated_distance(const Node& node, const Host& host) {
  static constexpr std::array<std::string_view, 5> words{"PIX", "PXB", "PHB", "NODE", "SYS"};
  static constexpr std::array<Distance, 5> distances{Distance::pix, Distance::pxb, Distance::phb,
                                                     Distance::node, Distance::sys};
  ObjectReader object(node);
  StatedDistance stated;
  for (auto [name, target] : {std::pair("from", &stated.from), std::pair("to", &stated.to)}) {
    const Node end = object.required(name);
    *target = end.name();
    const auto device = device_index(host, *target);
    if (!device || host.devices[*device].kind == DeviceKind::host_bridge)
      end.fail(fmt::format("\"{}\"", *target), "a device of this host other than a host bridge");
  }
  if (stated.from == stated.to)
    node.fail(fmt::format("a distance from \"{}\" to itself", stated.from));
  stated.distance = distances.at(object.required("distance").choice(words));
  object.finish();
  return stated;
}

Remark read_remark(const Node& node) {
  static constexpr std::array<std::string_view, 3> severities{"error", "warning", "note"};
  ObjectReader object(node);
  Remark remark;
  remark.rule = object.required("rule").name();
  remark.severity = static_cast<Severity>(object.required("severity").choice(severities));
  if (const auto n = object.optional("where")) remark.where = n->string();
  remark.message = object.required("message").string();
  if (const auto n = object.optional("remedy")) remark.remedy = n->string();
  object.finish();
  return remark;
}

void check_stated(const Host& host, const Node& node) {
  for (const Device& device : host.devices)
    if (device.place_known == false && !numa_index(host, device.under))
      node.fail(fmt::format(
          "{} has \"place_known\" false, so it must be below a NUMA node and not below \"{}\"",
          device.name, device.under));
  std::set<std::pair<std::string, std::string>> pairs;
  for (const StatedDistance& stated : host.distances)
    if (!pairs.insert(std::minmax(stated.from, stated.to)).second)
      node.fail(fmt::format("the distance of {} and {} is listed twice", stated.from, stated.to));
}

}  // namespace gdr
