#include <cstdio>
#include <exception>

#include "topology/model_library.hpp"
#include "topology/topology_json.hpp"

/// Counts the GPUs and NICs of a topology: consumer TOPOLOGY
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: consumer TOPOLOGY\n", stderr);
    return 2;
  }
  try {
    const gdr::Topology topology = gdr::load_topology(argv[1]);
    const auto gpus = gdr::devices_of_kind(topology, gdr::DeviceKind::gpu);
    const auto nics = gdr::devices_of_kind(topology, gdr::DeviceKind::nic);
    std::printf("%s: %zu GPUs, %zu NICs; models in %s\n", topology.name.c_str(), gpus.size(), nics.size(),
                gdr::data_folder().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 2;
  }
}
