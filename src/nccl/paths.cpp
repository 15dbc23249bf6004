#include "src/nccl/paths.hpp"

#include <algorithm>
#include <optional>

namespace gdr::nccl {
namespace {

/// Reverses the bits of `value` below a power of two, which spreads neighbours over NICs.
std::size_t mirror_bits(std::size_t value, std::size_t power) {
  std::size_t mirrored = 0;
  for (std::size_t low = 1, high = power >> 1U; low < power; low <<= 1U, high >>= 1U)
    if ((value & low) != 0) mirrored |= high;
  return mirrored;
}

bool is_power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

class Analysis {
 public:
  Analysis(Graph graph, const Rules& rules, const Settings& settings)
      : graph_(std::move(graph)),
        rules_(rules),
        settings_(settings),
        paths_(graph_, rules),
        gpus_(graph_.gpus),
        nets_(graph_.nets) {
    use_gdr_c2c_ = uses_gdr_over_c2c(rules, settings);
    gdr_level_ = gdr_level(rules, settings);
    near_nets_.resize(gpus_.size());
    near_gpus_.resize(nets_.size());
    local_gpus_.resize(nets_.size());
    relays_.assign(gpus_.size(), std::vector<std::size_t>(nets_.size()));
    for (std::size_t g = 0; g < gpus_.size(); ++g)
      std::fill(relays_[g].begin(), relays_[g].end(), g);
  }

  View run() {
    divert_gpu_pairs();
    if (rules_.p2c) mark_p2c();
    own_ = paths_;
    for (std::size_t n = 0; n < nets_.size(); ++n)
      for (std::size_t g = 0; g < gpus_.size(); ++g) settle(g, n);
    return result();
  }

 private:
  [[nodiscard]] const Path& path(std::size_t from, std::size_t to) const {
    return paths_.get(from, to);
  }

  /// The CPU with the fewest hops from a GPU.
  [[nodiscard]] std::size_t cpu_of(std::size_t gpu) const {
    std::size_t nearest = graph_.cpus.front();
    int hops = 0;
    for (const std::size_t cpu : graph_.cpus) {
      const int distance = path(gpus_[gpu], cpu).hops;
      if (distance > 0 && (hops == 0 || distance < hops)) {
        hops = distance;
        nearest = cpu;
      }
    }
    return nearest;
  }

  [[nodiscard]] PathType join(PathType a, PathType b) const {
    if (rules_.p2c && std::max(a, b) == PathType::phb && std::min(a, b) == PathType::c2c)
      return PathType::p2c;
    return std::max(a, b);
  }

  /// Routes between a GPU and a net, in one direction or both, over another node.
  void divert(std::size_t gpu, std::size_t net, std::size_t over, bool both) {
    go_over(gpus_[gpu], over, nets_[net]);
    if (both) go_over(nets_[net], over, gpus_[gpu]);
    near_nets_[gpu].reset();
    near_gpus_[net].reset();
    std::fill(local_gpus_.begin(), local_gpus_.end(), std::nullopt);
  }

  void go_over(std::size_t from, std::size_t over, std::size_t to) {
    const Path first = path(from, over);
    const Path second = path(over, to);
    paths_.get(from, to) = {join(first.type, second.type),
                            std::min(first.gigabytes_per_second, second.gigabytes_per_second),
                            first.hops + second.hops};
  }

  [[nodiscard]] PathType p2p_level() const {
    if (const auto level = parse_level(settings_.p2p_level)) return *level;
    const Node& cpu = graph_.nodes[graph_.cpus.front()];
    if (rules_.p2p_over_cpu) {
      const bool slow = cpu.arch == CpuArch::arm || cpu.vendor == CpuVendor::intel ||
                        cpu.vendor == CpuVendor::zhaoxin;
      return slow ? PathType::pxb : PathType::sys;
    }
    constexpr std::size_t few = 2;
    return cpu.vendor == CpuVendor::amd && gpus_.size() <= few ? PathType::sys : PathType::pxb;
  }

  /// Routes GPU pairs that are too far apart for peer-to-peer through memory at the CPU.
  void divert_gpu_pairs() {
    const PathType level = p2p_level();
    for (std::size_t g = 0; g < gpus_.size(); ++g)
      for (const std::size_t peer : gpus_)
        if (path(peer, gpus_[g]).type > level) go_over(peer, cpu_of(g), gpus_[g]);
  }

  void mark_p2c() {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const std::size_t cpu = cpu_of(g);
      const std::vector<std::size_t> near =
          rules_.p2c_nearest_only ? nearest(gpus_[g], nets_) : std::vector<std::size_t>();
      for (std::size_t n = 0; n < nets_.size(); ++n) {
        if (rules_.p2c_nearest_only && std::find(near.begin(), near.end(), n) == near.end())
          continue;
        if (join(path(gpus_[g], cpu).type, path(nets_[n], cpu).type) != PathType::p2c) continue;
        for (Path* path : {&paths_.get(gpus_[g], nets_[n]), &paths_.get(nets_[n], gpus_[g])})
          path->type = std::min(path->type, PathType::p2c);
      }
    }
  }

  /// Positions in `targets` of those with the highest bandwidth and, among these, the nearest type.
  [[nodiscard]] std::vector<std::size_t> nearest(std::size_t from,
                                                 const std::vector<std::size_t>& targets) const {
    std::vector<std::size_t> found;
    Path best{PathType::dis, 0, 0};
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const Path& candidate = path(from, targets[i]);
      const bool faster = candidate.gigabytes_per_second > best.gigabytes_per_second;
      const bool equal = candidate.gigabytes_per_second == best.gigabytes_per_second;
      if (faster || (equal && candidate.type < best.type)) {
        best = candidate;
        found.clear();
      }
      if (candidate.gigabytes_per_second == best.gigabytes_per_second &&
          candidate.type == best.type)
        found.push_back(i);
    }
    return found;
  }

  /// The nets that a GPU's channels use round-robin.
  [[nodiscard]] std::vector<std::size_t> local_nets(std::size_t gpu) const {
    if (!near_nets_[gpu]) near_nets_[gpu] = nearest(gpus_[gpu], nets_);
    const std::vector<std::size_t>& near = *near_nets_[gpu];
    if (near.empty()) return {};
    const std::size_t sharing = std::max<std::size_t>(1, near_gpus(near.front()).size());
    auto start = static_cast<std::size_t>(std::max(0, graph_.nodes[gpus_[gpu]].dev));
    if (rules_.device_modulo) start %= sharing;
    if (is_power_of_two(near.size())) start = mirror_bits(start, near.size());
    std::vector<std::size_t> nets;
    for (std::size_t i = 0; i < (near.size() + sharing - 1) / sharing; ++i)
      nets.push_back(near[(start + i) % near.size()]);
    return nets;
  }

  [[nodiscard]] const std::vector<std::size_t>& near_gpus(std::size_t net) const {
    if (!near_gpus_[net]) near_gpus_[net] = nearest(nets_[net], gpus_);
    return *near_gpus_[net];
  }

  /// The first GPU, channel by channel, that uses this net.
  [[nodiscard]] std::optional<std::size_t> local_gpu(std::size_t net) const {
    if (!local_gpus_[net]) local_gpus_[net] = find_local_gpu(net);
    return *local_gpus_[net];
  }

  [[nodiscard]] std::optional<std::size_t> find_local_gpu(std::size_t net) const {
    std::vector<std::size_t> candidates = near_gpus(net);
    if (rules_.any_gpu_is_local) {
      candidates.clear();
      for (std::size_t g = 0; g < gpus_.size(); ++g) candidates.push_back(g);
    }
    std::optional<std::size_t> found;
    std::size_t at_channel = static_cast<std::size_t>(rules_.max_channels);
    for (const std::size_t g : candidates) {
      const std::vector<std::size_t> nets = local_nets(g);
      const auto channel =
          static_cast<std::size_t>(std::find(nets.begin(), nets.end(), net) - nets.begin());
      if (channel >= nets.size() || channel >= at_channel) continue;
      at_channel = channel;
      found = g;
    }
    return found;
  }

  /// nullopt: depends on the compute capability, which is unknown.
  [[nodiscard]] std::optional<bool> may_read(std::size_t gpu) const {
    if (settings_.net_gdr_read && *settings_.net_gdr_read >= 0) return *settings_.net_gdr_read != 0;
    const int sm = graph_.nodes[gpus_[gpu]].sm;
    if ((rules_.reads_from_sm80 && sm >= 80) || gpus_.size() == 1) return true;
    const bool has_nvlink_peer = std::any_of(gpus_.begin(), gpus_.end(), [&](std::size_t peer) {
      return peer != gpus_[gpu] && path(gpus_[gpu], peer).type == PathType::nvl;
    });
    if (has_nvlink_peer) return true;
    return rules_.reads_from_sm80 && sm == 0 ? std::nullopt : std::optional<bool>(false);
  }

  [[nodiscard]] std::optional<bool> reads(std::size_t gpu, std::size_t net) const {
    return writes(gpu, net) ? may_read(gpu) : std::optional<bool>(false);
  }

  [[nodiscard]] bool writes(std::size_t gpu, std::size_t net) const {
    if (!graph_.nodes[nets_[net]].gdr || !graph_.nodes[gpus_[gpu]].gdr) return false;
    PathType distance = path(gpus_[gpu], nets_[net]).type;
    std::size_t owner = gpu;
    if (distance == PathType::pxn) {
      owner = relays_[gpu][net];
      distance = path(gpus_[owner], nets_[net]).type;
    }
    if (use_gdr_c2c_ && !rules_.level_includes_p2c) {
      const bool over_c2c = rules_.p2c
                                ? distance == PathType::p2c
                                : rules_.c2c_is_own_type && distance == PathType::phb &&
                                      path(gpus_[owner], cpu_of(owner)).type == PathType::c2c;
      if (over_c2c) distance = PathType::c2c;
    }
    return distance <= gdr_level_;
  }

  /// Whether `relay` may carry the traffic of `gpu` to a net over NVLink.
  [[nodiscard]] bool can_relay(std::size_t relay, std::size_t gpu, std::size_t net) const {
    const Path& of_relay = path(gpus_[relay], nets_[net]);
    const Path& own = path(gpus_[gpu], nets_[net]);
    if (of_relay.type > (rules_.relay_over_c2c ? PathType::p2c : PathType::pxb)) return false;
    if (rules_.relay_needs_gdr && !reads(relay, net).value_or(true)) return false;
    if (path(gpus_[relay], gpus_[gpu]).type > PathType::nvl) return false;
    const PathType good_enough = rules_.p2c ? PathType::pxn : PathType::pxb;
    return of_relay.gigabytes_per_second > own.gigabytes_per_second || own.type > good_enough;
  }

  /// Routes a GPU's traffic to a net through a relay GPU or, without GPUDirect RDMA, through the
  /// CPU.
  void settle(std::size_t gpu, std::size_t net) {
    const std::optional<std::size_t> relay = settings_.pxn ? local_gpu(net) : std::nullopt;
    if (relay && *relay != gpu && can_relay(*relay, gpu, net)) {
      divert(gpu, net, gpus_[*relay], false);
      paths_.get(gpus_[gpu], nets_[net]).type = PathType::pxn;
      relays_[gpu][net] = *relay;
    }
    if (!rules_.divert_always && path(gpus_[gpu], nets_[net]).type >= PathType::phb) return;
    if (writes(gpu, net)) return;
    divert(gpu, net, cpu_of(gpu), true);
    relays_[gpu][net] = gpu;
  }

  [[nodiscard]] View result() const {
    View view;
    for (const std::size_t gpu : gpus_) {
      const Node& node = graph_.nodes[gpu];
      view.gpus.push_back({node.device, node.rank, node.dev, node.sm});
    }
    for (const std::size_t net : nets_) {
      const Node& node = graph_.nodes[net];
      view.nets.push_back({node.device, node.dev, node.name, node.net_bandwidth});
    }
    const PathType level = p2p_level();
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      auto& nets = view.gpu_nets.emplace_back();
      for (std::size_t n = 0; n < nets_.size(); ++n)
        nets.push_back({path(gpus_[g], nets_[n]), own_->get(gpus_[g], nets_[n]), relays_[g][n],
                        writes(g, n), reads(g, n)});
      auto& peers = view.gpu_gpus.emplace_back();
      for (const std::size_t peer : gpus_)
        peers.push_back({path(gpus_[g], peer), path(gpus_[g], peer).type <= level});
      view.local_nets.push_back(local_nets(g));
    }
    return view;
  }

  Graph graph_;
  const Rules& rules_;
  const Settings& settings_;
  PathTable paths_;
  std::optional<PathTable> own_;
  const std::vector<std::size_t>& gpus_;
  const std::vector<std::size_t>& nets_;
  // Found once and again after what they rest on was diverted: looking at all GPUs and nets for
  // each pair takes the fourth power of their number.
  mutable std::vector<std::optional<std::vector<std::size_t>>> near_nets_;     // by GPU
  mutable std::vector<std::optional<std::vector<std::size_t>>> near_gpus_;     // by net
  mutable std::vector<std::optional<std::optional<std::size_t>>> local_gpus_;  // by net
  PathType gdr_level_ = PathType::pxb;
  bool use_gdr_c2c_ = false;
  std::vector<std::vector<std::size_t>> relays_;  ///< [gpu][net]
};

}  // namespace

View view(const Topology& topology, std::size_t host, const ModelLibrary* models,
          const Settings& settings) {
  const Rules rules = rules_of(settings.version);
  if (topology.hosts.at(host).numa_nodes.empty()) return {};
  return Analysis(build_graph(topology, host, models, rules), rules, settings).run();
}

}  // namespace gdr::nccl
