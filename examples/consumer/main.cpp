#include <cstdio>
#include <exception>
#include <string>

#include "gdr/catalog/model_library.hpp"
#include "gdr/sim/predict.hpp"
#include "gdr/topology/topology_json.hpp"

/// Predicts a transfer of 1 MiB between two GPUs, with GPUDirect RDMA and staged through host
/// memory: consumer [TOPOLOGY FROM TO]
int main(int argc, char** argv) {
  if (argc != 1 && argc != 4) {
    std::fputs("usage: consumer [TOPOLOGY FROM TO]\n", stderr);
    return 2;
  }
  try {
    // DATA_DIR is gdr_DATA_DIR of find_package(gdr). The environment variable GDR_DATA_DIR
    // overrides it.
    const std::string data = gdr::data_folder(DATA_DIR);
    const std::string file =
        argc == 4 ? argv[1] : data + "/topologies/clusters/two-dual-socket-4gpu-1nic.json";
    const gdr::Topology topology = gdr::load_topology(file);
    const gdr::Graph graph(topology);
    const gdr::ModelLibrary models(data + "/models");
    const gdr::Hardware hardware(graph, models);
    gdr::sim::Simulator simulator;

    gdr::Transfer transfer;
    transfer.from = gdr::find_device(topology, argc == 4 ? argv[2] : "h0/gpu2");
    transfer.to = gdr::find_device(topology, argc == 4 ? argv[3] : "h1/gpu2");
    transfer.size = gdr::parse_bytes("1MiB");
    std::printf("%s: %s to %s, models in %s\n", topology.name.c_str(),
                gdr::label(topology, transfer.from).c_str(),
                gdr::label(topology, transfer.to).c_str(), models.folder().c_str());
    for (const gdr::PathKind path : {gdr::PathKind::gdr, gdr::PathKind::staged}) {
      transfer.path = path;
      const gdr::sim::Prediction p = gdr::sim::predict(simulator, hardware, transfer, {});
      std::printf("%-6s  %7.1f us  %5.2f GB/s\n", std::string(gdr::to_string(path)).c_str(),
                  p.latency.us(), p.bandwidth.gigabytes_per_second());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 2;
  }
}
