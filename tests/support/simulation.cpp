#include "tests/support/simulation.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gdr::sim {

Simulator& simulator() {
  static Simulator one;
  return one;
}

const ModelLibrary& models() {
  static const ModelLibrary library(project_file("models"));
  return library;
}

std::string project_file(const std::string& path) {
  return std::string(GDR_PROJECT_DIR) + "/" + path;
}

void expect_close(const std::string& what, double expected, double actual, double tolerance) {
  const double deviation = expected != 0 ? (actual - expected) / expected : actual;
  fmt::print("{}: expected {:.6g}, actual {:.6g}, deviation {:+.4f} %\n", what, expected, actual,
             deviation * 100);
  EXPECT_LE(std::abs(deviation), tolerance) << what;
}

Lab::Lab(const std::string& file, const std::vector<std::string>& settings)
    : topology(load_topology(project_file(file), parse_settings(settings))),
      graph(topology),
      hardware(graph, models()) {}

Lab::Lab(const json::Value& document, const std::vector<std::string>& settings)
    : topology(read_topology(document, "lab", "", parse_settings(settings))),
      graph(topology),
      hardware(graph, models()) {}

Transfer Lab::transfer(const std::string& from, const std::string& to, PathKind path, Bytes size,
                       Operation operation) const {
  Transfer t;
  t.from = find_device(topology, from);
  t.to = find_device(topology, to);
  t.path = path;
  t.size = size;
  t.operation = operation;
  if (path == PathKind::rdma) t.memory = MemoryKind::host;
  return t;
}

Prediction Lab::run(const Transfer& transfer, const Options& options) const {
  return predict(simulator(), hardware, transfer, options);
}

Scenario Lab::scenario(const Transfer& transfer, const Drive& drive) const {
  ScenarioBuilder builder(hardware);
  builder.add(plan_transfer(graph, models(), transfer), drive);
  return builder.take();
}

json::Value two_switch_host() {
  return json::parse(R"({
    "format": 1, "name": "two-switch-host",
    "hosts": [{
      "name": "h0",
      "software": {"kernel": "5.15", "iommu": "off", "nvidia_peermem": true},
      "sockets": [{"name": "cpu0", "model": "epyc-rome"}],
      "numa_nodes": [{"name": "numa0", "socket": "cpu0"}],
      "devices": [
        {"name": "hb0", "kind": "host-bridge", "under": "numa0"},
        {"name": "hb1", "kind": "host-bridge", "under": "numa0"},
        {"name": "sw0", "kind": "switch", "model": "pex88096", "under": "hb0", "link": "gen4x16", "acs": []},
        {"name": "sw1", "kind": "switch", "model": "pex88096", "under": "hb1", "link": "gen4x16", "acs": []},
        {"name": "gpu0", "kind": "gpu", "model": "a100-sxm4-80gb", "under": "sw0", "link": "gen4x16", "acs": []},
        {"name": "gpu1", "kind": "gpu", "model": "a100-sxm4-80gb", "under": "sw0", "link": "gen4x16", "acs": []},
        {"name": "gpu2", "kind": "gpu", "model": "a100-sxm4-80gb", "under": "sw1", "link": "gen4x16", "acs": []},
        {"name": "gpu3", "kind": "gpu", "model": "a100-sxm4-80gb", "under": "sw1", "link": "gen4x16", "acs": []},
        {"name": "nic0", "kind": "nic", "model": "connectx-6-hdr", "under": "sw0", "link": "gen4x16", "acs": []},
        {"name": "nic1", "kind": "nic", "model": "connectx-6-hdr", "under": "sw1", "link": "gen4x16", "acs": []}
      ]
    }]
  })",
                     "two-switch-host");
}

}  // namespace gdr::sim
