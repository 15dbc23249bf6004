#pragma once

#include <map>
#include <set>
#include <vector>

#include "sim/flow/scenario.hpp"

namespace gdr::sim {

/// The resources of a scenario while its flows are being made, and how much each is used.
class Resources {
 public:
  /// The number of a resource. `payload`: its capacity counts payload, while stages count what they
  /// put on links.
  std::size_t number(const ResourceId& id, Bandwidth capacity, bool payload);
  /// A pipeline whose work is time, counted in nanoseconds: its capacity is one second per second.
  std::size_t pipeline(const ResourceId& id) { return number(id, {1e9}, false); }
  /// `bytes` of payload use the resource for `units_per_byte` each.
  void use(std::size_t resource, double units_per_byte, double bytes);

  /// Posted writes of an engine below a root port to another root port.
  struct PeerWrite {
    ResourceId port{};  ///< fan_out
    Bandwidth bandwidth{};
    VertexId engine = 0;
    std::size_t to = 0;    ///< edge below the other root port
    std::size_t flow = 0;  ///< the flow that writes
    std::size_t stage = 0;
    double units_per_byte = 1;
    double bytes = 0;
  };
  void note(const PeerWrite& write) { peer_writes_[write.port].push_back(write); }
  /// Some root complexes slow down when several devices below one root port write to several others
  /// at once: gives those flows one more resource to share.
  void limit_fan_out(std::vector<FlowSpec>& flows);

  /// The finished resources, by number.
  [[nodiscard]] std::vector<Resource> take() const;

 private:
  struct Shared {
    ResourceId id{};
    double capacity = 0;
    bool payload = false;
    double units = 0;  ///< of all stages that use it
    double bytes = 0;  ///< payload of all stages that use it
  };
  std::vector<Shared> resources_;
  std::map<ResourceId, std::size_t> numbers_;
  std::map<ResourceId, std::vector<PeerWrite>> peer_writes_;
};

}  // namespace gdr::sim
