// Two figures, each with its reference:
//  1. simulated transfers per second of the event engine, against a bare SimGrid program with the
//     same flows in the same run;
//  2. wall time and peak memory of every GPU pair between two DGX H100, every path, 16 sizes,
//     against the limits of 5 s and 500 MB.
// Every measurement runs in its own process, A and B in turn; prints medians and ranges.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "bench/bare_simgrid.hpp"
#include "sim/predict.hpp"
#include "src/topology/topology_json.hpp"

namespace {

using namespace gdr;

struct Sample {
  double seconds = 0;
  double work = 0;
  double megabytes = 0;
};

/// Runs `body`, which returns the work it did, in a child process.
Sample in_child(const std::function<double()>& body) {
  int channel[2];
  if (pipe(channel) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const auto start = std::chrono::steady_clock::now();
    Sample sample;
    sample.work = body();
    sample.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    sample.megabytes = static_cast<double>(usage.ru_maxrss) / 1000;
    (void)!write(channel[1], &sample, sizeof sample);
    _exit(0);
  }
  close(channel[1]);
  Sample sample;
  if (read(channel[0], &sample, sizeof sample) != static_cast<ssize_t>(sizeof sample)) sample = {};
  close(channel[0]);
  waitpid(child, nullptr, 0);
  return sample;
}

double engine_flows(int flows, int granules) {
  sim::Scenario scenario;
  scenario.extrapolate = false;
  scenario.resources.push_back({.units_per_second = 1e12});
  for (int i = 0; i < flows; ++i) {
    scenario.resources.push_back({.units_per_second = 25e9 + 1e7 * i});
    sim::FlowSpec flow;
    flow.stages.resize(1);
    flow.stages[0].resources = {static_cast<std::size_t>(i) + 1, 0};
    flow.message = Bytes{4096} * static_cast<std::uint64_t>(granules);
    scenario.flows.push_back(flow);
  }
  sim::Engine engine;
  return static_cast<double>(engine.run(scenario).transfers);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(int flows, int repeats) {
  const int granules = 400000 / flows;
  std::vector<double> ours;
  std::vector<double> bare;
  std::vector<double> ratios;
  for (int i = 0; i < repeats; ++i) {
    const Sample a = in_child([=] { return engine_flows(flows, granules); });
    const Sample b =
        in_child([=] { return static_cast<double>(bench::bare_simgrid(flows, granules)); });
    ours.push_back(a.work / a.seconds);
    bare.push_back(b.work / b.seconds);
    ratios.push_back(ours.back() / bare.back());
  }
  fmt::print(
      "{:>4} concurrent flows: engine {:>9.0f} transfers/s, bare SimGrid {:>9.0f}, ratio {:.2f} "
      "({:.2f} to {:.2f}); at least 0.70 wanted\n",
      flows, median(ours), median(bare), median(ratios),
      *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()));
}

double all_pairs() {
  const std::string folder = GDR_PROJECT_DIR;
  const Topology topology = load_topology(folder + "/topologies/clusters/two-dgx-h100.json");
  const ModelLibrary models(folder + "/models");
  const Graph graph(topology);
  const Hardware hardware(graph, models);
  sim::Simulator simulator;
  double points = 0;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      for (const PathKind path : {PathKind::tcp, PathKind::staged, PathKind::gdr})
        for (int size = 0; size < 16; ++size) {
          Transfer transfer;
          transfer.from = find_device(topology, fmt::format("h0/gpu{}", i));
          transfer.to = find_device(topology, fmt::format("h1/gpu{}", j));
          transfer.path = path;
          transfer.size = Bytes{std::uint64_t{8} << (2 * static_cast<unsigned>(size))};
          if (transfer.size.count > (std::uint64_t{16} << 30U))
            transfer.size = Bytes{std::uint64_t{16} << 30U};
          (void)sim::predict(simulator, hardware, transfer, {});
          ++points;
        }
  fmt::print("     {} points, {} scenarios, {} of them different, {} transfers simulated\n", points,
             simulator.asked(), simulator.ran(), simulator.transfers());
  std::fflush(stdout);
  return points;
}

}  // namespace

int main() {
  fmt::print("1. Simulated transfers per second\n");
  std::fflush(stdout);
  for (const int flows : {64, 512}) {
    compare(flows, 5);
    std::fflush(stdout);
  }
  fmt::print("2. All GPU pairs between two DGX H100, all paths, 16 sizes from 8 B to 8 GiB\n");
  std::fflush(stdout);
  const Sample sample = in_child(all_pairs);
  fmt::print("     {:.2f} s (limit 5 s), peak memory {:.0f} MB (limit 500 MB)\n", sample.seconds,
             sample.megabytes);
  return sample.work > 0 ? 0 : 1;
}
