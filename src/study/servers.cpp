#include "src/study/servers.hpp"

#include <algorithm>

#include "src/common/error.hpp"
#include "src/hardware/hardware.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr::compare {
namespace {

using namespace literals;

constexpr Bytes bulk = 256_MiB;  // long enough that the start does not count
constexpr Bytes small = 8_B;

/// The first host and an equal one.
Topology pair_of(const Topology& topology) {
  Topology two = topology;
  two.hosts = {topology.hosts.front(), topology.hosts.front()};
  two.hosts[0].name = "h0";
  two.hosts[1].name = "h1";
  if (two.fabric) return two;
  const auto& devices = topology.hosts.front().devices;
  const bool ethernet =
      std::none_of(
          devices.begin(), devices.end(),
          [](const Device& device) { return device.link_layer == LinkLayer::infiniband; }) &&
      std::any_of(devices.begin(), devices.end(),
                  [](const Device& device) { return device.link_layer == LinkLayer::ethernet; });
  two.fabric = Fabric{ethernet ? "roce-v2" : "infiniband", {}, {}};
  return two;
}

void count(const Verdict& verdict, Counts& counts) {
  for (const Pair& pair : verdict.pairs) {
    if (pair.kind != PairKind::gpu_nic || pair.host != 0) continue;
    if (pair.answer == PairAnswer::works) ++counts.works;
    if (pair.answer == PairAnswer::slow) ++counts.slow;
    if (pair.answer == PairAnswer::blocked) ++counts.blocked;
    if (pair.answer == PairAnswer::unknown) ++counts.unknown;
  }
}

struct Flow {
  Transfer transfer;
  std::string name;
};

/// Each GPU to its counterpart; `direct` counts those that the verdict lets go without host memory.
std::vector<Flow> flows_of(const Topology& two, const Verdict& verdict, std::size_t& direct) {
  std::vector<Flow> flows;
  for (const BestPair& best : verdict.best) {
    if (best.host != 0) continue;
    const Pair& pair = verdict.pairs[best.pair];
    const DeviceId gpu = find_device(two, pair.from);
    const DeviceId nic = find_device(two, pair.to);
    const bool gdr = pair.answer != PairAnswer::blocked;
    direct += gdr ? 1 : 0;
    Flow flow;
    flow.transfer.from = gpu;
    flow.transfer.to = {1, gpu.device};
    flow.transfer.path = gdr ? PathKind::gdr : PathKind::staged;
    flow.transfer.size = bulk;
    flow.transfer.via = {nic, {1, nic.device}};
    flow.name = get(two, gpu).name + " with " + get(two, nic).name;
    flows.push_back(std::move(flow));
  }
  return flows;
}

Bandwidth mean(const std::vector<sim::Prediction>& predictions) {
  double sum = 0;
  for (const sim::Prediction& one : predictions) sum += one.bandwidth.bytes_per_second;
  return {sum / static_cast<double>(predictions.size())};
}

}  // namespace

Column column_of(sim::Simulator& simulator, const Topology& topology, const ModelLibrary& models) {
  Column column;
  column.name = topology.name;
  const Topology two = pair_of(topology);
  const Graph graph(two);
  const Hardware hardware(graph, models);
  for (std::size_t i = 0; i < two.hosts.front().devices.size(); ++i) {
    const DeviceId id{0, i};
    column.gpus += get(two, id).kind == DeviceKind::gpu ? 1 : 0;
    column.nics +=
        get(two, id).kind == DeviceKind::nic && hardware.nic(id).rdma.value != "none" ? 1 : 0;
  }
  const Verdict verdict = judge(graph, models);
  count(verdict, column.pairs);
  const std::vector<Flow> flows = flows_of(two, verdict, column.direct);
  if (flows.empty()) {
    column.note = column.gpus == 0 ? "no GPU" : "no NIC";
    return column;
  }
  try {
    std::vector<sim::TimedTransfer> all;
    std::vector<sim::Prediction> alone;
    double latency = 0;
    for (const Flow& flow : flows) {
      all.push_back({flow.transfer, Duration{}});
      alone.push_back(
          sim::predict_together(simulator, hardware, {{flow.transfer, Duration{}}}, {}).front());
      Transfer message = flow.transfer;
      message.size = small;
      latency += sim::predict(simulator, hardware, message, {}).latency.seconds;
    }
    const auto together = sim::predict_together(simulator, hardware, all, {});
    const auto least =
        std::min_element(together.begin(), together.end(),
                         [](const auto& a, const auto& b) { return a.bandwidth < b.bandwidth; });
    column.alone = mean(alone);
    column.together = mean(together);
    column.least = least->bandwidth;
    column.worst = flows[static_cast<std::size_t>(least - together.begin())].name;
    column.oversubscription = column.alone->bytes_per_second / column.together->bytes_per_second;
    column.latency = Duration{latency / static_cast<double>(flows.size())};
    double memory = 0;
    for (const sim::Prediction& one : together)
      memory += one.bandwidth.bytes_per_second * one.host_memory_bytes_per_byte / 2;
    column.host_memory = Bandwidth{memory};
  } catch (const InputError& error) {
    column.note = error.what();
  }
  return column;
}

}  // namespace gdr::compare
