#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "src/common/terminal_text.hpp"
#include "src/hardware/distance.hpp"
#include "src/import/observed_host.hpp"
#include "src/import/topo_matrix.hpp"

namespace gdr::observed {
namespace {

bool is_gpu(const std::string& name) { return name.starts_with("GPU"); }

bool fits_a_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

class Applier {
 public:
  Applier(const Matrix& matrix, Host& host)
      : matrix_(matrix), host_(host), device_(matrix.names.size()) {}

  void apply() {
    if (host_.devices.empty()) add_devices();
    else match();
    legend_remark();
    nvlinks();
    distances();
    numa_remarks();
  }

 private:
  using Index = std::size_t;

  /// The table's entry for two columns; empty if there is none or the two directions differ.
  [[nodiscard]] std::string word(Index a, Index b) const {
    const auto one = matrix_.cells.find({a, b});
    const auto other = matrix_.cells.find({b, a});
    if (one == matrix_.cells.end())
      return other == matrix_.cells.end() ? std::string() : other->second;
    return other == matrix_.cells.end() || other->second == one->second ? one->second
                                                                        : std::string();
  }
  [[nodiscard]] std::optional<Distance> distance(Index a, Index b) const {
    return distance_of_word(word(a, b));
  }
  [[nodiscard]] Device& device(Index column) { return host_.devices[*device_[column]]; }

  void remark(std::string rule, Severity severity, std::string message, std::string remedy) {
    host_.remarks.push_back(
        {std::move(rule), severity, "host", std::move(message), std::move(remedy)});
  }

  // --- devices that a tree shows

  /// Matches GPUs by their order, which is that of bus ids, and NICs by the names of their RDMA
  /// devices, or by order if the counts agree.
  void match() {
    match_in_order(DeviceKind::gpu, [](const std::string& name) { return is_gpu(name); });
    bool named = false;
    for (Index c = 0; c < matrix_.names.size(); ++c)
      for (Index d = 0; d < host_.devices.size() && !matrix_.rdma[c].empty(); ++d)
        if (host_.devices[d].rdma_device == matrix_.rdma[c]) {
          device_[c] = d;
          named = true;
        }
    if (!named)
      match_in_order(DeviceKind::nic, [](const std::string& name) { return !is_gpu(name); });
    for (Index c = 0; c < matrix_.names.size(); ++c)
      if (device_[c] && device(c).kind == DeviceKind::nic && device(c).rdma_device.empty() &&
          fits_a_name(matrix_.rdma[c]))
        device(c).rdma_device = matrix_.rdma[c];
    for (Index c = 0; c < matrix_.names.size(); ++c)
      if (device_[c]) use_numa(c);
  }

  template <typename Wanted>
  void match_in_order(DeviceKind kind, Wanted wanted) {
    std::vector<Index> devices;
    for (Index i = 0; i < host_.devices.size(); ++i)
      if (host_.devices[i].kind == kind && host_.devices[i].model != "generic-ethernet")
        devices.push_back(i);
    std::sort(devices.begin(), devices.end(), [&](Index a, Index b) {
      return host_.devices[a].address < host_.devices[b].address;
    });
    std::vector<Index> columns;
    for (Index c = 0; c < matrix_.names.size(); ++c)
      if (wanted(matrix_.names[c])) columns.push_back(c);
    if (columns.size() != devices.size()) {
      if (!columns.empty())
        remark("matrix-not-matched", Severity::note,
               fmt::format("The table of nvidia-smi has {} {}s and the listing {}, so it is "
                           "unknown which is which.",
                           columns.size(), to_string(kind), devices.size()),
               "Take both from the same machine; a job may see fewer devices than the system has.");
      return;
    }
    for (Index i = 0; i < columns.size(); ++i) device_[columns[i]] = devices[i];
  }

  /// Takes the table's NUMA node for a device whose node is unknown.
  void use_numa(Index column) {
    const auto id = text::whole_int(matrix_.numa[column]);
    if (!id || *id < 0 || *id > 4095) return;
    Device* top = &device(column);
    while (!numa_index(host_, top->under)) top = &host_.devices[*device_index(host_, top->under)];
    if (host_.numa_nodes[*numa_index(host_, top->under)].known.value_or(true)) return;
    top->under = node(*id);
  }

  std::string node(int id) {
    std::string name = fmt::format("numa{}", id);
    if (numa_index(host_, name)) return name;
    const std::string socket = fmt::format("cpu{}", id);
    if (host_.numa_nodes.empty() && host_.sockets.size() == 1) host_.sockets.front().name = socket;
    if (!socket_index(host_, socket))
      host_.sockets.push_back({socket, host_.sockets.front().model});
    host_.numa_nodes.push_back({name, socket, {}, {}});
    return name;
  }

  // --- devices that only the table shows

  void add_devices() {
    const Index count = matrix_.names.size();
    std::vector<std::string> numa(count);
    for (Index c = 0; c < count; ++c)
      if (const auto id = text::whole_int(matrix_.numa[c]); id && *id >= 0 && *id < 4096)
        numa[c] = node(*id);
    // A NIC, or a GPU without a node, is on the node of any device that is nearer to it than
    // another node could be.
    for (bool more = true; more;) {
      more = false;
      for (Index c = 0; c < count; ++c)
        for (Index other = 0; other < count && numa[c].empty(); ++other)
          if (const auto d = distance(c, other); d && *d < Distance::sys && !numa[other].empty()) {
            numa[c] = numa[other];
            more = true;
          }
    }
    Index gpus = 0;
    Index nics = 0;
    for (Index c = 0; c < count; ++c) {
      Device made;
      const bool gpu = is_gpu(matrix_.names[c]);
      made.kind = gpu ? DeviceKind::gpu : DeviceKind::nic;
      made.name = gpu ? fmt::format("gpu{}", gpus++) : fmt::format("nic{}", nics++);
      made.under = numa[c].empty() ? unknown_numa(host_) : numa[c];
      made.place_known = false;
      if (!gpu && fits_a_name(matrix_.rdma[c])) made.rdma_device = matrix_.rdma[c];
      device_[c] = host_.devices.size();
      host_.devices.push_back(std::move(made));
    }
    if (host_.numa_nodes.size() > 2 && !host_.sockets_known) host_.sockets_known = false;
  }

  // --- relations in the table

  void legend_remark() {
    std::vector<std::string> shifted;
    for (Index c = 0; c < matrix_.names.size(); ++c) {
      const std::string& rdma = matrix_.rdma[c];
      if (!matrix_.names[c].starts_with("NIC") || !rdma.starts_with("mlx5_")) continue;
      if (text::whole_int(rdma.substr(5)) && rdma.substr(5) != matrix_.names[c].substr(3))
        shifted.push_back(matrix_.names[c] + " is " + rdma);
    }
    if (shifted.empty()) return;
    remark("nic-number-is-not-device-number", Severity::note,
           fmt::format("According to the table's legend {}: nvidia-smi does not number NICs as "
                       "their devices are numbered.",
                       fmt::join(shifted, ", ")),
           "Name NICs as the legend does, in NCCL_IB_HCA and elsewhere; ibv_devices lists the "
           "devices that are missing from it.");
  }

  /// Links GPUs directly, or through NVSwitches if no GPU has enough links for a separate set per
  /// peer.
  void nvlinks() {
    if (!host_.nvlinks.empty()) return;
    constexpr int most_links = 18;
    std::vector<int> links(matrix_.names.size(), 0);
    const auto count_of = [&](Index a, Index b) {
      // A NIC has no NVLink: the table's columns have slipped.
      if (!is_gpu(matrix_.names[a]) || !is_gpu(matrix_.names[b])) return 0;
      const std::string w = word(a, b);
      return w.starts_with("NV") ? text::whole_int(w.substr(2)).value_or(0) : 0;
    };
    int most = 0;
    for (Index a = 0; a < links.size(); ++a)
      for (Index b = 0; b < links.size(); ++b)
        if (a != b) links[a] += count_of(a, b);
    for (const int total : links) most = std::max(most, total);
    for (Index a = 0; a < links.size(); ++a) {
      int to_switch = 0;
      for (Index b = 0; b < links.size(); ++b) {
        const int count = a == b || !device_[a] || !device_[b] ? 0 : count_of(a, b);
        if (count < 1 || count > 64) continue;
        to_switch = std::max(to_switch, count);
        if (most <= most_links && a < b)
          host_.nvlinks.push_back({device(a).name, device(b).name, count, {}, {}});
      }
      if (most > most_links && to_switch > 0)
        host_.nvlinks.push_back({device(a).name, "", to_switch, {}, {}});
    }
  }

  /// Takes distances that the tree does not show and compares the others with it.
  void distances() {
    std::vector<std::string> wrong;
    {
      Topology alone;
      alone.hosts = {host_};
      if (alone.hosts.front().numa_nodes.empty()) unknown_numa(alone.hosts.front());
      const Graph graph(alone);
      for (Index a = 0; a < matrix_.names.size(); ++a)
        for (Index b = a + 1; b < matrix_.names.size(); ++b) {
          const auto stated = distance(a, b);
          if (!stated || !device_[a] || !device_[b]) continue;
          const Distance shown = pcie_distance(graph, {0, *device_[a]}, {0, *device_[b]});
          const bool lost = device(a).place_known == false || device(b).place_known == false;
          const bool open = shown == Distance::node_or_sys || shown == Distance::phb_or_node ||
                            shown == Distance::unknown;
          if (lost || open) stated_.push_back({device(a).name, device(b).name, *stated});
          else if (shown != *stated)
            wrong.push_back(fmt::format("{} with {} {} and not {}", device(a).name, device(b).name,
                                        to_string(shown), to_string(*stated)));
        }
    }
    host_.distances.insert(host_.distances.end(), stated_.begin(), stated_.end());
    if (wrong.empty()) return;
    const std::size_t all = wrong.size();
    if (wrong.size() > 4) wrong.resize(4);
    remark("matrix-contradicts-tree", Severity::warning,
           fmt::format("The PCIe tree and the table of nvidia-smi disagree on {} pairs; according "
                       "to the tree {}{}.",
                       all, fmt::join(wrong, ", "), all > wrong.size() ? ", and so on" : ""),
           "Take both from the same machine; nvidia-smi counts a chip that shows two levels of "
           "switches as one switch.");
  }

  void numa_remarks() {
    std::vector<std::string> far;
    std::vector<std::string> near;
    for (Index a = 0; a < matrix_.names.size(); ++a)
      for (Index b = a + 1; b < matrix_.names.size(); ++b) {
        const auto d = distance(a, b);
        const bool both = !matrix_.numa[a].empty() && !matrix_.numa[b].empty() &&
                          text::whole_int(matrix_.numa[a]) && text::whole_int(matrix_.numa[b]);
        const bool placed =
            device_[a] && device_[b] && !both && is_gpu(matrix_.names[a]) && same_node(a, b);
        const std::string names = matrix_.names[a] + " and " + matrix_.names[b];
        if (!d) continue;
        if (*d == Distance::sys && ((both && matrix_.numa[a] == matrix_.numa[b]) || placed))
          far.push_back(names);
        if (*d < Distance::sys && both && matrix_.numa[a] != matrix_.numa[b]) near.push_back(names);
      }
    const auto say = [&](std::vector<std::string>& pairs, std::string_view what) {
      if (pairs.empty()) return;
      const std::size_t all = pairs.size();
      if (pairs.size() > 3) pairs.resize(3);
      remark("matrix-contradicts-numa", Severity::warning,
             fmt::format("The table says {} for {} pairs ({}{}).", what, all,
                         fmt::join(pairs, "; "), all > pairs.size() ? "; ..." : ""),
             "Check the NUMA settings of the BIOS (NPS, SNC, node interleaving) and "
             "/sys/bus/pci/devices/*/numa_node; gdr uses the table's distances.");
    };
    say(far, "SYS, between two NUMA nodes, and gives both devices the same node");
    say(near, "a distance inside one NUMA node and gives the devices different nodes");
  }

  /// NICs have no NUMA column: each takes the node of a device near it.
  bool same_node(Index a, Index b) {
    const std::string& one = device(a).under;
    return one == device(b).under && numa_index(host_, one) &&
           host_.numa_nodes[*numa_index(host_, one)].known.value_or(true);
  }

  const Matrix& matrix_;
  Host& host_;
  std::vector<std::optional<Index>> device_;  // by column
  std::vector<StatedDistance> stated_;
};

}  // namespace

void apply_matrix(const Matrix& matrix, Host& host) { Applier(matrix, host).apply(); }

}  // namespace gdr::observed
