#pragma once

#include <string>
#include <string_view>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/hardware/graph.hpp"
#include "src/import/machine.hpp"
#include "src/topology/topology_json.hpp"

/// If an importer accepts the input, the loader must accept the topology, and its graph must be
/// buildable.
inline void import_or_refuse(std::string text, const char* name) {
  gdr::Topology topology;
  try {
    topology = gdr::import_machine(std::vector<gdr::NamedText>{{std::move(text), name}});
  } catch (const gdr::InputError& error) {
    gdr::check(std::string_view(error.what()).find('\n') == std::string_view::npos,
               "an error of more than one line");
    return;
  }
  gdr::check(gdr::read_topology(to_json(topology), "again", "") == topology,
             "the topology differs after writing and reading");
  const gdr::Graph graph(topology);
}
