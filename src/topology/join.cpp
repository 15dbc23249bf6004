#include "src/topology/join.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "src/common/error.hpp"

namespace gdr {
namespace {

/// The value of the topologies that have one. Throws InputError when they differ.
template <typename Part>
void take(std::optional<Part>& into, const std::optional<Part>& from, std::string& said_by,
          const std::string& file, const char* what) {
  if (!from) return;
  if (into && *into != *from)
    throw InputError(
        fmt::format("{}: its {} differs from that of {}; make them equal, or leave one out", file,
                    what, said_by));
  if (!into) said_by = file;
  into = from;
}

}  // namespace

Fabric fabric_of_nics(const Topology& topology) {
  bool infiniband = false;
  bool ethernet = false;
  for (const DeviceId id : devices_of_kind(topology, DeviceKind::nic)) {
    const auto layer = get(topology, id).link_layer;
    infiniband = infiniband || layer == LinkLayer::infiniband;
    ethernet = ethernet || layer == LinkLayer::ethernet;
  }
  return {ethernet && !infiniband ? "roce-v2" : "infiniband", {}, {}};
}

Topology join(const std::vector<Topology>& topologies, const std::vector<std::string>& files) {
  Topology joined;
  std::set<std::string> names;
  std::vector<std::string> parts;
  std::string fabric_by;
  std::string staging_by;
  for (std::size_t i = 0; i < topologies.size(); ++i) {
    const Topology& one = topologies[i];
    parts.push_back(one.name);
    take(joined.fabric, one.fabric, fabric_by, files.at(i), "fabric");
    take(joined.staging, one.staging, staging_by, files.at(i), "staging");
    for (const std::string& source : one.sources)
      if (std::find(joined.sources.begin(), joined.sources.end(), source) == joined.sources.end())
        joined.sources.push_back(source);
    joined.nccl.insert(joined.nccl.end(), one.nccl.begin(), one.nccl.end());
    for (const Host& host : one.hosts) {
      names.insert(host.name);
      joined.hosts.push_back(host);
    }
  }
  if (names.size() < joined.hosts.size())
    for (std::size_t h = 0; h < joined.hosts.size(); ++h)
      joined.hosts[h].name = fmt::format("h{}", h);
  joined.description = fmt::format("joined from {}", fmt::join(parts, ", "));
  if (!joined.fabric && joined.hosts.size() > 1) joined.fabric = fabric_of_nics(joined);
  return joined;
}

}  // namespace gdr
