#include "bench/bare_simgrid.hpp"

#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace gdr::bench {

std::uint64_t bare_simgrid(int flows, int granules_a_flow) {
  namespace s4u = simgrid::s4u;
  int argc = 1;
  std::string program = "bare";
  char* argv[] = {program.data(), nullptr};
  xbt_log_control_set("root.thres:error");
  s4u::Engine engine(&argc, argv);
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("surf/precision:1e-12");
  s4u::NetZone* zone = s4u::create_star_zone("zone");
  s4u::Host* sink = zone->create_host("sink", 1e9)->seal();
  const s4u::Link* shared = zone->create_link("shared", 1e12)->seal();
  zone->add_route(sink->get_netpoint(), nullptr, nullptr, nullptr, std::vector<s4u::LinkInRoute>{});
  std::uint64_t sent = 0;
  for (int i = 0; i < flows; ++i) {
    s4u::Host* source = zone->create_host("source" + std::to_string(i), 1e9)->seal();
    const s4u::Link* own = zone->create_link("own" + std::to_string(i), 25e9 + 1e7 * i)->seal();
    zone->add_route(source->get_netpoint(), nullptr, nullptr, nullptr,
                    {s4u::LinkInRoute(own), s4u::LinkInRoute(shared)});
    s4u::Actor::create("flow", source, [=, &sent] {
      for (int k = 0; k < granules_a_flow; ++k) {
        s4u::Comm::sendto(source, sink, 4096);
        ++sent;
      }
    });
  }
  zone->seal();
  engine.run();
  return sent;
}

}  // namespace gdr::bench
