#include "emu/agreement/agreement.hpp"

#include <algorithm>

#include "src/common/check.hpp"

namespace gdr::agreement {
namespace {

/// from - taken, 0 at least; a row with more taken is unequal in any case.
Bytes less(Bytes from, Bytes taken) { return {from.count - std::min(from.count, taken.count)}; }

/// What the witnesses of one host saw of each mover there.
class Side {
 public:
  explicit Side(const SideObservation& seen) : seen_(seen) {}

  [[nodiscard]] std::vector<Witness> copied_out() const {
    return with("memory", &ProcessBytes::copy_engine_out, {"module", seen_.module.copied_out});
  }
  [[nodiscard]] std::vector<Witness> copied_in() const {
    return with("memory", &ProcessBytes::copy_engine_in, {"module", seen_.module.copied_in});
  }
  [[nodiscard]] std::vector<Witness> socket_out() const {
    return with("transport", &ProcessBytes::socket_out, {"fabric", seen_.sent.stream});
  }
  [[nodiscard]] std::vector<Witness> socket_in() const {
    return with("transport", &ProcessBytes::socket_in, {"fabric", seen_.delivered.stream});
  }
  [[nodiscard]] Bytes read_gpu() const { return seen_.module.nic_read; }
  [[nodiscard]] Bytes read_host() const { return less(seen_.module.host_read, seen_.sent.sent); }
  [[nodiscard]] Bytes wrote_gpu() const { return seen_.module.nic_written; }
  [[nodiscard]] Bytes wrote_host() const {
    return less(seen_.module.host_written, seen_.delivered.sent);
  }
  [[nodiscard]] const SideObservation& seen() const { return seen_; }

 private:
  /// What the process itself reports, if anything, and another witness.
  [[nodiscard]] std::vector<Witness> with(const char* by, Bytes ProcessBytes::*count,
                                          const Witness& other) const {
    if (!seen_.process) return {other};
    return {{by, (*seen_.process).*count}, other};
  }
  const SideObservation& seen_;
};

bool is_gpu(const Graph& graph, VertexId vertex) {
  return graph.vertex(vertex).kind == VertexKind::gpu;
}

/// The other side announces the data of reads, and of sends that the receiver fetches; after a loss
/// it announces the rest again.
bool announced_by_sender(const Transfer& transfer) {
  return transfer.path == PathKind::staged ||
         (transfer.path == PathKind::gdr && transfer.operation == Operation::write);
}

std::vector<Witness> wire(const Transfer& transfer, const Side& from, const Side& to) {
  std::vector<Witness> witnesses{{"sent", from.seen().sent.data()},
                                 {"delivered", to.seen().delivered.data()}};
  if (announced_by_sender(transfer) && from.seen().process)
    witnesses.push_back({"RETHs", from.seen().announced});
  if (transfer.path == PathKind::tcp)
    witnesses.push_back({"flows", less(from.seen().tcp, from.seen().sent.stream_control)});
  return witnesses;
}

/// What the transport asked NICs to move at GPU memory; which side asks depends on the operation.
std::optional<Bytes> asked(const Side& from, const Side& to) {
  if (!from.seen().process || !to.seen().process) return std::nullopt;
  return from.seen().process->rdma + to.seen().process->rdma;
}

std::optional<Bytes> bounced(const Side& side, Bytes ProcessBytes::*count) {
  if (!side.seen().process) return std::nullopt;
  return (*side.seen().process).*count;
}

std::vector<Witness> at_memory(Bytes module, std::optional<Bytes> transport, const Witness& end) {
  if (!transport) return {{"module", module}, end};
  return {{"module", module}, {"transport", *transport}, end};
}

/// A NIC's stage at GPU memory, bounce buffers or the kernel's socket buffers; the fabric sees the
/// stage's other end.
std::vector<Witness> nic_read(const Graph& graph, const Stage& stage, const Transfer& transfer,
                              const Side& from, const Side& to) {
  const Witness end{"fabric", from.seen().sent.data()};
  if (is_gpu(graph, stage.from)) return at_memory(from.read_gpu(), asked(from, to), end);
  if (transfer.path == PathKind::staged)
    return at_memory(from.read_host(), bounced(from, &ProcessBytes::bounce_out), end);
  return {end};
}

std::vector<Witness> nic_write(const Graph& graph, const Stage& stage, const Transfer& transfer,
                               const Side& from, const Side& to) {
  const Witness end{"fabric", to.seen().delivered.data()};
  if (is_gpu(graph, stage.to)) return at_memory(to.wrote_gpu(), asked(from, to), end);
  if (transfer.path == PathKind::staged)
    return at_memory(to.wrote_host(), bounced(to, &ProcessBytes::bounce_in), end);
  return {end};
}

std::vector<Witness> witnesses(const Graph& graph, const Stage& stage, const Transfer& transfer,
                               const Side& from, const Side& to) {
  const bool at_sender = graph.vertex(stage.from).host == transfer.from.host;
  switch (stage.mover) {
    case Mover::copy_engine:
      return at_sender ? from.copied_out() : to.copied_in();
    case Mover::socket_copy:
      return at_sender ? from.socket_out() : to.socket_in();
    case Mover::nic_read:
      return nic_read(graph, stage, transfer, from, to);
    case Mover::wire:
      return wire(transfer, from, to);
    case Mover::nic_write:
      return nic_write(graph, stage, transfer, from, to);
    case Mover::cpu_copy:
    case Mover::device_dma:
    case Mover::gpu_thread:
      break;
  }
  return {};
}

/// The most that any witness saw.
Bytes most(const Row& row) {
  Bytes result;
  for (const Witness& witness : row.observed) result = std::max(result, witness.bytes);
  return result;
}

/// Rows of one host for what the plan has no stage for, and its accesses to host memory.
class HostRows {
 public:
  HostRows(const Graph& graph, const TransferPlan& plan, std::size_t host, ByteAudit& audit)
      : graph_(graph), plan_(plan), host_(host), audit_(audit) {}

  [[nodiscard]] bool has(Mover mover, bool gpu, bool reads) const {
    return std::any_of(plan_.stages.begin(), plan_.stages.end(), [&](const Stage& stage) {
      const VertexId end = reads ? stage.from : stage.to;
      return stage.mover == mover && graph_.vertex(end).host == host_ && is_gpu(graph_, end) == gpu;
    });
  }
  [[nodiscard]] bool has(Mover mover) const {
    return std::any_of(plan_.stages.begin(), plan_.stages.end(), [&](const Stage& stage) {
      return stage.mover == mover && graph_.vertex(stage.from).host == host_;
    });
  }
  /// Each byte makes `accesses` accesses to host memory.
  void beside(std::string mover, std::string from, std::string to, std::vector<Witness> observed,
              std::uint64_t accesses) {
    const Row& row = audit_.beside.emplace_back(
        Row{std::move(mover), std::move(from), std::move(to), {}, std::move(observed)});
    touched_ = touched_ + most(row) * accesses;
  }
  void add(const Side& side, DeviceId gpu, DeviceId nic, bool sends);
  void add_host_memory();

 private:
  const Graph& graph_;
  const TransferPlan& plan_;
  std::size_t host_;
  ByteAudit& audit_;
  Bytes touched_;
};

void HostRows::add(const Side& side, DeviceId gpu, DeviceId nic, bool sends) {
  const std::string gpu_name = label(graph_.topology(), gpu);
  const std::string nic_name = label(graph_.topology(), nic);
  const std::string memory = graph_.topology().hosts[host_].name + "/memory";
  const SideObservation& seen = side.seen();
  if (!has(Mover::copy_engine, true, true))
    beside("copy-engine", gpu_name, memory, side.copied_out(), 1);
  if (!has(Mover::copy_engine, true, false))
    beside("copy-engine", memory, gpu_name, side.copied_in(), 1);
  if (seen.process)
    beside("copy-engine", gpu_name, gpu_name, {{"memory", seen.process->copy_engine_within}}, 0);
  if (!has(Mover::nic_read, true, true))
    beside("nic-read", gpu_name, nic_name, {{"module", side.read_gpu()}}, 0);
  if (!has(Mover::nic_write, true, false))
    beside("nic-write", nic_name, gpu_name, {{"module", side.wrote_gpu()}}, 0);
  // With tcp this stage belongs to the kernel's sockets, and the module sees only RDMA.
  const bool rdma = plan_.transfer.path == PathKind::staged;
  if (!rdma || !sends) beside("nic-read", memory, nic_name, {{"module", side.read_host()}}, 1);
  if (!rdma || sends) beside("nic-write", nic_name, memory, {{"module", side.wrote_host()}}, 1);
  if (!sends || !has(Mover::socket_copy))
    beside("socket-copy", memory, "socket", side.socket_out(), 2);
  if (sends || !has(Mover::socket_copy))
    beside("socket-copy", "socket", memory, side.socket_in(), 2);
  if (seen.process) beside("cpu-copy", memory, memory, {{"memory", seen.process->cpu}}, 2);
  beside("any", graph_.topology().hosts[host_].name + "/other GPUs", "",
         {{"module", seen.module.other_gpus}}, 0);
  beside("any", graph_.topology().hosts[host_].name + "/other NICs", "",
         {{"fabric", seen.other_nics.data()}}, 0);
}

void HostRows::add_host_memory() {
  Row row{"all", graph_.topology().hosts[host_].name + "/memory", "", {}, {}};
  bool all = true;
  for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
    const Row& stage = audit_.stages[i];
    for (const VertexId end : {plan_.stages[i].from, plan_.stages[i].to}) {
      if (graph_.vertex(end).kind != VertexKind::memory || graph_.vertex(end).host != host_)
        continue;
      row.planned = row.planned + stage.planned;
      touched_ = touched_ + most(stage);
      all = all && !stage.observed.empty();
    }
  }
  if (all) row.observed.push_back({"the other rows", touched_});
  audit_.host_memory.push_back(std::move(row));
}

}  // namespace

WireBytes operator+(const WireBytes& a, const WireBytes& b) {
  return {a.written + b.written,
          a.sent + b.sent,
          a.read + b.read,
          a.written_again + b.written_again,
          a.sent_again + b.sent_again,
          a.read_again + b.read_again,
          a.stream + b.stream,
          a.stream_control + b.stream_control};
}

WireBytes operator-(const WireBytes& now, const WireBytes& before) {
  return {less(now.written, before.written),
          less(now.sent, before.sent),
          less(now.read, before.read),
          less(now.written_again, before.written_again),
          less(now.sent_again, before.sent_again),
          less(now.read_again, before.read_again),
          less(now.stream, before.stream),
          less(now.stream_control, before.stream_control)};
}

WireBytes with_sends_as_data(const WireBytes& bytes) {
  WireBytes result = bytes;
  result.written = bytes.written + bytes.sent;
  result.written_again = bytes.written_again + bytes.sent_again;
  result.stream_control = bytes.stream + bytes.stream_control;
  result.sent = result.sent_again = result.stream = {};
  return result;
}

bool Row::equal() const {
  return !observed.empty() && std::all_of(observed.begin(), observed.end(),
                                          [&](const Witness& w) { return w.bytes == planned; });
}

bool ByteAudit::equal() const {
  const auto all = [](const std::vector<Row>& rows) {
    return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.equal(); });
  };
  return all(stages) && all(host_memory) && all(beside);
}

ByteAudit audit(const Graph& graph, const TransferPlan& plan, const Observation& observed) {
  const Transfer& transfer = plan.transfer;
  check(plan.from_nic.has_value() && plan.to_nic.has_value(), "a transfer between hosts");
  const Side from(observed.from);
  const Side to(observed.to);
  ByteAudit result;
  for (const Stage& stage : plan.stages) {
    Row& row = result.stages.emplace_back(
        Row{std::string(to_string(stage.mover)), graph.label(stage.from), graph.label(stage.to),
            stage.bytes, witnesses(graph, stage, transfer, from, to)});
    for (const Hop& hop : stage.data)
      row.hops.emplace_back(graph.label(hop.from), graph.label(hop.to));
  }
  HostRows at_from(graph, plan, transfer.from.host, result);
  HostRows at_to(graph, plan, transfer.to.host, result);
  at_from.add(from, transfer.from, *plan.from_nic, true);
  at_to.add(to, transfer.to, *plan.to_nic, false);
  result.beside.push_back(
      {"wire",
       label(graph.topology(), *plan.to_nic),
       label(graph.topology(), *plan.from_nic),
       {},
       {{"sent", to.seen().sent.data()}, {"delivered", from.seen().delivered.data()}}});
  at_from.add_host_memory();
  at_to.add_host_memory();
  return result;
}

}  // namespace gdr::agreement
