#include "src/study/servers.hpp"

#include <algorithm>

#include "src/hardware/hardware.hpp"
#include "src/study/ask.hpp"
#include "src/study/equal_hosts.hpp"

namespace gdr::study {
namespace {

using namespace literals;

constexpr Bytes bulk = 256_MiB;  // long enough that the start does not matter
constexpr Bytes small = 8_B;

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

/// The transfers of each GPU to its counterpart through its best NIC. Counts in `column` those that
/// the verdict admits without host memory, and notes the obstacle where neither path works.
std::vector<Flow> flows_of(const Graph& graph, const ModelLibrary& models, const Verdict& verdict,
                           Column& column) {
  const Topology& two = graph.topology();
  std::vector<Flow> flows;
  for (const BestPair& best : verdict.best) {
    if (best.host != 0) continue;
    const DeviceId gpu = find_device(two, best.gpu);
    Transfer transfer;
    transfer.from = gpu;
    transfer.to = {1, gpu.device};
    transfer.size = bulk;
    transfer.path = PathKind::gdr;
    Admission admission = admit(graph, models, verdict, transfer);
    const bool direct = !admission.refusal;
    if (!direct) {
      transfer.path = PathKind::staged;
      admission = admit(graph, models, verdict, transfer);
    }
    if (admission.refusal) {
      column.note = reason_of(*admission.refusal, verdict);
      return {};
    }
    column.direct += direct ? 1 : 0;
    flows.push_back({std::move(admission.transfer),
                     get(two, gpu).name + " with " + get(two, admission.nics.front().nic).name});
  }
  if (flows.empty()) column.note = column.gpus == 0 ? "no GPU" : "no NIC";
  return flows;
}

Bandwidth mean(const std::vector<sim::Prediction>& predictions) {
  double sum = 0;
  for (const sim::Prediction& one : predictions) sum += one.bandwidth.bytes_per_second;
  return {sum / static_cast<double>(predictions.size())};
}

void add_figures(sim::Simulator& simulator, const Hardware& hardware,
                 const std::vector<Flow>& flows, Column& column) {
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
}

}  // namespace

Column column_of(sim::Simulator& simulator, const Topology& topology, const ModelLibrary& models) {
  Column column;
  column.name = topology.name;
  const Topology two = with_equal_host(topology, models);
  const Graph graph(two);
  const Hardware hardware(graph, models);
  for (const DeviceId id : devices_of_kind(two, DeviceKind::gpu))
    column.gpus += id.host == 0 ? 1 : 0;
  for (const DeviceId id : devices_of_kind(two, DeviceKind::nic))
    column.nics += id.host == 0 && hardware.nic(id).rdma.value != "none" ? 1 : 0;
  const Verdict verdict = judge(graph, models);
  count(verdict, column.pairs);
  const std::vector<Flow> flows = flows_of(graph, models, verdict, column);
  if (!flows.empty()) add_figures(simulator, hardware, flows, column);
  return column;
}

}  // namespace gdr::study
