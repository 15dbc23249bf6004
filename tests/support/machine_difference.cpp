#include "tests/support/machine_difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "src/hardware/hardware.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr::test {
namespace {

constexpr double tolerance = 0.02;  // of rates, which the kernel reports in whole Gb/s

std::string text_of(const std::string& value) { return value.empty() ? "none" : value; }
std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(std::size_t value) { return std::to_string(value); }
std::string text_of(PcieLink value) { return to_string(value); }
std::string text_of(Bytes value) { return to_string(value); }
std::string text_of(Acs value) { return fmt::format("{:#x}", value.bits); }
std::string text_of(IommuMode value) { return std::string(to_string(value)); }
template <typename T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "not known";
}

/// The value in the file, or else in the model that it names.
const ModelHeader* header_of(const ModelLibrary& models, const Device& device) {
  if (!names_model(device.model)) return nullptr;
  if (device.kind == DeviceKind::gpu) return &models.gpu(device.model).header;
  if (device.kind == DeviceKind::nic) return &models.nic(device.model).header;
  if (device.kind == DeviceKind::pci_switch) return &models.pci_switch(device.model).header;
  if (device.kind == DeviceKind::nvme) return &models.nvme(device.model).header;
  return nullptr;
}

std::string id_of(const ModelLibrary& models, const Device& device) {
  const ModelHeader* header = header_of(models, device);
  if (!device.pci_id.empty() || header == nullptr || header->pci_ids.empty()) return device.pci_id;
  return header->pci_ids.front();
}

/// A device of the tree, or a host bridge that the file lacks but a guest has.
struct Node {
  const Device* device = nullptr;  ///< nullptr: a bridge that the file lacks
  std::size_t numa = 0;
  std::vector<Node> below;
};

class Tree {
 public:
  Tree(const Host& host, const ModelLibrary& models) : host_(host), models_(models) {}

  std::vector<Node> roots() const {
    std::vector<Node> roots;
    for (std::size_t numa = 0; numa < host_.numa_nodes.size(); ++numa)
      for (Node& node : below(host_.numa_nodes[numa].name, numa)) {
        if (node.device->kind == DeviceKind::host_bridge) roots.push_back(std::move(node));
        else roots.push_back({nullptr, numa, {std::move(node)}});
      }
    return roots;
  }

 private:
  /// Drops what an import ignores: bridges without devices below, and devices without a kind.
  std::vector<Node> below(const std::string& place, std::size_t numa) const {
    std::vector<Node> nodes;
    for (const Device& device : host_.devices) {
      if (device.under != place || device.kind == DeviceKind::other) continue;
      if (device.kind == DeviceKind::nvswitch && id_of(models_, device).empty()) continue;
      Node node{&device, numa, below(device.name, numa)};
      const bool bridge =
          device.kind == DeviceKind::host_bridge || device.kind == DeviceKind::pci_switch;
      if (!bridge || !node.below.empty()) nodes.push_back(std::move(node));
    }
    return nodes;
  }

  const Host& host_;
  const ModelLibrary& models_;
};

class Comparison {
 public:
  Comparison(const Topology& original, const Topology& seen, const ModelLibrary& models)
      : original_(original), seen_(seen), models_(models) {}

  std::vector<std::string> run() {
    if (original_.hosts.size() != 1 || seen_.hosts.size() != 1)
      return {"only topologies of one host can be compared"};
    take_out_what_no_guest_shows();
    const Graph wanted(original_);
    const Graph found(seen_);
    wanted_.emplace(wanted, models_);
    found_.emplace(found, models_);
    hosts();
    children("host", Tree(host(), models_).roots(), Tree(other(), models_).roots());
    wanted_.reset();
    found_.reset();
    if (lines_.empty() || names_complete_) pairs();
    return std::move(lines_);
  }

 private:
  static DeviceId id_in(const Host& host, const Device& device) {
    return {0, static_cast<std::size_t>(&device - host.devices.data())};
  }
  Host& host() { return original_.hosts.front(); }
  Host& other() { return seen_.hosts.front(); }

  template <typename T>
  void same(const std::string& where, std::string_view what, const T& wanted, const T& found) {
    if (wanted != found)
      lines_.push_back(
          fmt::format("{}: {}: {} wanted, {} seen", where, what, text_of(wanted), text_of(found)));
  }
  /// If the original does not say, any value is fine.
  template <typename T>
  void stated(const std::string& where, std::string_view what, const std::optional<T>& wanted,
              const std::optional<T>& found) {
    if (wanted) same(where, what, wanted, found);
  }

  void take_out_what_no_guest_shows() {
    host().nvlinks.clear();
    other().nvlinks.clear();
    for (Host* one : {&host(), &other()})
      for (Device& device : one->devices) {
        device.ports.reset();
        device.gdr.reset();
        device.gid_type.reset();
        device.lossless.reset();
      }
    Software software = host().software;
    if (software.iommu) software.iommu = other().software.iommu;
    if (software.nvidia_peermem) software.nvidia_peermem = other().software.nvidia_peermem;
    std::swap(software, other().software);
    stated("host", "IOMMU", host().software.iommu, software.iommu);
    stated("host", "nvidia-peermem", host().software.nvidia_peermem, software.nvidia_peermem);
    seen_.fabric = original_.fabric;
  }

  void hosts() {
    same("host", "virtual machine", host().virtual_machine.value_or(false),
         other().virtual_machine.value_or(false));
    same("host", "number of NUMA nodes", host().numa_nodes.size(), other().numa_nodes.size());
    same("host", "number of sockets", host().sockets.size(), other().sockets.size());
    for (std::size_t i = 0; i < std::min(host().sockets.size(), other().sockets.size()); ++i) {
      const Socket& socket = host().sockets[i];
      const bool shown = names_model(socket.model) && !models_.cpu(socket.model).cpuid.empty();
      if (shown) same(socket.name, "processor", socket.model, other().sockets[i].model);
    }
    for (std::size_t i = 0; i < std::min(host().numa_nodes.size(), other().numa_nodes.size());
         ++i) {
      same(host().numa_nodes[i].name, "NUMA node", fmt::format("numa{}", i),
           other().numa_nodes[i].name);
      same(host().numa_nodes[i].name, "its socket",
           socket_index(host(), host().numa_nodes[i].socket),
           socket_index(other(), other().numa_nodes[i].socket));
    }
  }

  void children(const std::string& where, const std::vector<Node>& wanted,
                const std::vector<Node>& found) {
    same(where, "number of devices below it", wanted.size(), found.size());
    if (wanted.size() != found.size()) names_complete_ = false;
    for (std::size_t i = 0; i < std::min(wanted.size(), found.size()); ++i) {
      const Node& node = wanted[i];
      const std::string name = node.device != nullptr ? node.device->name : where + "'s bridge";
      same(name, "NUMA node", node.numa, found[i].numa);
      if (node.device != nullptr) device(*node.device, *found[i].device, node.numa);
      children(name, node.below, found[i].below);
    }
  }

  void device(const Device& wanted, const Device& found, std::size_t numa) {
    same(wanted.name, "kind", std::string(to_string(wanted.kind)),
         std::string(to_string(found.kind)));
    if (wanted.kind != found.kind) return;
    names_[wanted.name] = found.name;
    std::string id = id_of(models_, wanted);
    if (wanted.kind == DeviceKind::host_bridge && id.empty()) id = id_of_bridge(numa);
    if (!id.empty()) same(wanted.name, "PCI id", id, found.pci_id);
    const ModelHeader* header = header_of(models_, wanted);
    const bool id_implies_model =
        header != nullptr &&
        std::find(header->pci_ids.begin(), header->pci_ids.end(), id) != header->pci_ids.end();
    if (id_implies_model) same(wanted.name, "model", wanted.model, found.model);
    else models_not_shown_[found.name] = wanted.model;
    if (!wanted.acs) acs_left_open_.insert(found.name);
    if (wanted.kind == DeviceKind::host_bridge) return;
    const DeviceId id_wanted = id_in(host(), wanted);
    const auto link = wanted_->link(id_wanted);
    if (wanted_->shows_virtual_link(id_wanted))
      stated(wanted.name, "link", wanted.link, found.link);
    else if (link.basis != Basis::assumed) stated(wanted.name, "link", link.value, found.link);
    stated(wanted.name, "what the link can do", wanted.link_capability,
           found.link_capability ? found.link_capability : found.link);
    stated(wanted.name, "ACS of its port", wanted.acs, found.acs);
    stated(wanted.name, "maximum payload", wanted.max_payload, found.max_payload);
    stated(wanted.name, "relaxed ordering", wanted.relaxed_ordering, found.relaxed_ordering);
    stated(wanted.name, "ATS", wanted.ats, found.ats);
    sizes(wanted, found);
  }

  void sizes(const Device& wanted, const Device& found) {
    const bool named = header_of(models_, wanted) != nullptr;
    auto request = wanted.max_read_request;
    auto bar = wanted.bar_size;
    const DeviceId id = id_in(host(), wanted);
    const DeviceId other_id = id_in(other(), found);
    if (named && wanted.kind == DeviceKind::gpu) {
      request = wanted_->max_read_request(wanted_->graph().device(id)).value;
      bar = wanted_->bar_size(id).value;
    }
    if (named && wanted.kind == DeviceKind::nic)
      request = wanted_->max_read_request(wanted_->graph().device(id)).value;
    stated(wanted.name, "read request size", request, found.max_read_request);
    if (wanted.kind == DeviceKind::gpu) stated(wanted.name, "BAR", bar, found.bar_size);
    if (wanted.kind != DeviceKind::nic) return;
    same(wanted.name, "Ethernet", wanted_->runs_ethernet(id), found_->runs_ethernet(other_id));
    const double rate = wanted_->network_rate(id).bytes_per_second;
    const double other_rate = found_->network_rate(other_id).bytes_per_second;
    if (std::abs(rate - other_rate) > tolerance * rate)
      lines_.push_back(fmt::format("{}: rate of a port: {:.1f} Gb/s wanted, {:.1f} seen",
                                   wanted.name, rate * 8e-9, other_rate * 8e-9));
  }

  std::string id_of_bridge(std::size_t numa) {
    const std::string& model =
        host().sockets.at(socket_index(host(), host().numa_nodes[numa].socket).value()).model;
    if (!names_model(model) || models_.cpu(model).host_bridge_ids.empty()) return {};
    return models_.cpu(model).host_bridge_ids.front();
  }

  static std::string device_of(const std::string& label) {
    return label.substr(label.find('/') + 1);
  }

  void pairs() {
    for (Device& device : other().devices) {
      if (const auto model = models_not_shown_.find(device.name); model != models_not_shown_.end())
        device.model = model->second;
      if (acs_left_open_.contains(device.name)) device.acs.reset();
    }
    const Verdict wanted = judge(Graph(original_), models_);
    const Verdict found = judge(Graph(seen_), models_);
    same("host", "number of pairs", wanted.pairs.size(), found.pairs.size());
    using Key = std::pair<std::string, std::string>;
    std::map<Key, const Pair*> known;
    for (const Pair& pair : found.pairs) {
      known[{device_of(pair.from), device_of(pair.to)}] = &pair;
      known[{device_of(pair.to), device_of(pair.from)}] = &pair;
    }
    for (const Pair& pair : wanted.pairs) {
      const std::string where = fmt::format("{} and {}", device_of(pair.from), device_of(pair.to));
      const auto other = known.find({names_[device_of(pair.from)], names_[device_of(pair.to)]});
      if (other == known.end()) lines_.push_back(where + ": no such pair seen");
      else one_pair(where, pair, *other->second);
    }
  }

  void one_pair(const std::string& where, const Pair& wanted, const Pair& found) {
    // A topology may leave the choice between two distances open; a guest has one of them.
    const bool either =
        wanted.distance == "PHB/NODE" && (found.distance == "PHB" || found.distance == "NODE");
    if (!either) {
      same(where, "distance", wanted.distance, found.distance);
      same(where, "NCCL's distance", wanted.nccl_distance, found.nccl_distance);
    }
    same(where, "route", std::string(to_string(wanted.route)), std::string(to_string(found.route)));
    same(where, "redirected", wanted.redirected, found.redirected);
    if (!either)
      same(where, "kernel's P2PDMA", std::string(to_string(wanted.kernel_p2pdma)),
           std::string(to_string(found.kernel_p2pdma)));
    same(where, "answer", std::string(to_string(wanted.answer)),
         std::string(to_string(found.answer)));
    bandwidth(where + ": bandwidth of reads", wanted.bandwidth.read, found.bandwidth.read);
    bandwidth(where + ": bandwidth of writes", wanted.bandwidth.write, found.bandwidth.write);
    const std::set<std::string> rules(wanted.findings.begin(), wanted.findings.end());
    const std::set<std::string> others(found.findings.begin(), found.findings.end());
    same(where, "findings", fmt::format("{}", fmt::join(rules, " ")),
         fmt::format("{}", fmt::join(others, " ")));
  }

  void bandwidth(const std::string& what, const std::optional<Bandwidth>& wanted,
                 const std::optional<Bandwidth>& found) {
    const double one = wanted ? wanted->bytes_per_second : 0;
    const double other = found ? found->bytes_per_second : 0;
    if (std::abs(one - other) > tolerance * one)
      lines_.push_back(
          fmt::format("{}: {:.1f} GB/s wanted, {:.1f} seen", what, one * 1e-9, other * 1e-9));
  }

  Topology original_;
  Topology seen_;
  const ModelLibrary& models_;
  std::optional<Hardware> wanted_;
  std::optional<Hardware> found_;
  std::vector<std::string> lines_;
  std::map<std::string, std::string> names_;  ///< names in the other, by the original's names
  std::map<std::string, std::string>
      models_not_shown_;  ///< models in the file that the ID does not imply, by the other's name
  std::set<std::string>
      acs_left_open_;  ///< devices, by the other's name, whose ACS the file leaves open
  bool names_complete_ = true;
};

}  // namespace

std::vector<std::string> differences(const Topology& original, const Topology& seen,
                                     const ModelLibrary& models) {
  return Comparison(original, seen, models).run();
}

}  // namespace gdr::test
