#include "src/import/observed_host.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/common/error.hpp"

namespace gdr::observed {
namespace {

class HostMaker {
 public:
  HostMaker(Machine machine, const nccl::Identifier& identifier)
      : machine_(std::move(machine)), identifier_(identifier) {}

  Host make() {
    host_.name = "h0";
    host_.virtual_machine = machine_.virtual_machine;
    host_.software = machine_.software;
    if (machine_.functions.size() > 16384)
      throw InputError(
          fmt::format("{} PCI functions; at most 16384 are allowed", machine_.functions.size()));
    resolve_tree(machine_);
    find_roles();
    add_numa_nodes(machine_, identifier_, host_);
    add_trees();
    name_devices();
    for (Remark remark : machine_.remarks) {
      if (remark.rule == "gpu-bar-unassigned") remark.message += window_text();
      add_remark(std::move(remark));
    }
    loose_acs();
    if (machine_.matrix) apply_matrix(*machine_.matrix, host_);
    if (host_.numa_nodes.empty()) unknown_numa(host_);
    return std::move(host_);
  }

 private:
  using Index = std::size_t;

  [[nodiscard]] bool is_bridge(Index i) const {
    const Function& function = machine_.functions[i];
    return !children_[i].empty() || function.secondary ||
           (function.pci_class && *function.pci_class >> 8U == 0x0604);
  }

  /// Marks the relevant functions: GPUs, NICs, drives, NVSwitches, other accelerators, and the
  /// bridges above them.
  void find_roles() {
    const auto count = machine_.functions.size();
    children_.resize(count);
    kinds_.resize(count);
    wanted_.resize(count);
    for (Index i = 0; i < count; ++i)
      if (const auto above = machine_.functions[i].above) children_[*above].push_back(i);
    for (Index i = 0; i < count; ++i) {
      if (!is_bridge(i)) kinds_[i] = kind_of(machine_.functions[i], identifier_);
      if (!kinds_[i]) continue;
      for (std::optional<Index> at = i; at && !wanted_[*at]; at = machine_.functions[*at].above)
        wanted_[*at] = true;
    }
    const auto before = [&](Index a, Index b) {
      const auto key = [&](Index i) {
        return std::pair(machine_.functions[i].address.empty(), machine_.functions[i].address);
      };
      return key(a) < key(b);
    };
    for (auto& children : children_) std::stable_sort(children.begin(), children.end(), before);
    for (Index i = 0; i < count; ++i) {
      const Function& function = machine_.functions[i];
      if (function.numa_node.value_or(-1) < 0) continue;
      if (!function.root_bus.empty()) node_of_root_.emplace(function.root_bus, *function.numa_node);
      node_of_top_.emplace(top_of(i), *function.numa_node);
    }
    for (Index i = 0; i < count; ++i)
      if (wanted_[i] && !machine_.functions[i].above) tops_.push_back(i);
    std::stable_sort(tops_.begin(), tops_.end(), before);
  }

  void add_trees() {
    for (const Index top : tops_) {
      const std::string& root = machine_.functions[top].root_bus;
      const std::string numa = numa_of(top);
      if (root.empty()) {
        if (is_bridge(top)) add(top, numa, nullptr, 1);
        else add_device(top, numa, nullptr, true);
        continue;
      }
      add(top, host_bridge(root, numa), nullptr, 1);
    }
  }

  /// The node of a function, or else of another function on its root bus.
  std::string numa_of(Index top) {
    const Function& function = machine_.functions[top];
    std::optional<int> node =
        function.numa_node.value_or(-1) >= 0 ? function.numa_node : std::nullopt;
    if (const auto found = node_of_root_.find(function.root_bus);
        !node && found != node_of_root_.end())
      node = found->second;
    if (const auto found = node_of_top_.find(top); !node && found != node_of_top_.end())
      node = found->second;
    const bool one_node = host_.numa_nodes.size() == 1 &&
                          host_.numa_nodes.front().known.value_or(true) &&
                          (machine_.numa_nodes.size() == 1 || machine_.processor.numa_nodes == 1);
    if (!node && one_node) return host_.numa_nodes.front().name;
    const std::string name = node ? fmt::format("numa{}", *node) : std::string();
    return node && numa_index(host_, name) ? name : unknown_numa(host_);
  }

  [[nodiscard]] Index top_of(Index i) const {
    while (machine_.functions[i].above) i = *machine_.functions[i].above;
    return i;
  }

  std::string host_bridge(const std::string& root, const std::string& numa) {
    const auto [at, is_new] =
        bridge_of_root_.try_emplace(root, fmt::format("hb{}", bridge_of_root_.size()));
    if (is_new) {
      Device& bridge = host_.devices.emplace_back();
      bridge.name = at->second;
      bridge.kind = DeviceKind::host_bridge;
      bridge.under = numa;
      if (const Function* first = find(machine_, root + ":00.0");
          first != nullptr && !first->above) {
        bridge.address = first->address;
        bridge.pci_id = first->pci_id;
      }
    }
    return at->second;
  }

  /// `depth` counts bridges from the root port. Ports of unknown kind alternate between upstream
  /// and downstream.
  void add(Index i, const std::string& under, const Function* port, int depth) {
    const Function& function = machine_.functions[i];
    if (!is_bridge(i)) {
      add_device(i, under, port, false);
      return;
    }
    bool upstream = depth % 2 == 0;
    if (function.port_type == PortType::upstream) upstream = true;
    if (function.port_type == PortType::root || function.port_type == PortType::downstream)
      upstream = false;
    const int below = upstream ? 3 : 2;
    std::string place = under;
    if (upstream) {
      kinds_[i] = DeviceKind::pci_switch;
      place = add_device(i, under, port, false);
    }
    for (const Index child : children_[i])
      if (wanted_[child]) add(child, place, &function, below);
  }

  std::string add_device(Index i, const std::string& under, const Function* port, bool lost) {
    if (host_.devices.size() >= 4096) throw InputError("more than 4096 devices");
    Device& device = host_.devices.emplace_back();
    device.kind = *kinds_[i];
    device.under = under;
    device.name = fmt::format("#{}", host_.devices.size());  // renamed when all devices are known
    if (lost) device.place_known = false;
    device.pci_id = machine_.functions[i].pci_id;
    if (device.kind != DeviceKind::other && device.kind != DeviceKind::nvswitch)
      device.model = identifier_.device_model(device);
    read_device(machine_, machine_.functions[i], port, device, machine_.remarks);
    return device.name;
  }

  void name_devices() {
    std::map<std::string, std::string> names;
    const auto number = [&](DeviceKind kind, std::string_view prefix) {
      std::vector<Index> found;
      for (Index i = 0; i < host_.devices.size(); ++i)
        if (host_.devices[i].kind == kind) found.push_back(i);
      const bool by_address = kind != DeviceKind::pci_switch;
      if (by_address)
        std::stable_sort(found.begin(), found.end(), [&](Index a, Index b) {
          return host_.devices[a].address < host_.devices[b].address;
        });
      for (Index n = 0; n < found.size(); ++n)
        names[host_.devices[found[n]].name] = fmt::format("{}{}", prefix, n);
    };
    number(DeviceKind::gpu, "gpu");
    number(DeviceKind::nic, "nic");
    number(DeviceKind::nvme, "nvme");
    number(DeviceKind::nvswitch, "nvswitch");
    number(DeviceKind::pci_switch, "sw");
    number(DeviceKind::other, "pci");
    for (Device& device : host_.devices) {
      for (std::string* name : {&device.name, &device.under})
        if (const auto found = names.find(*name); found != names.end()) *name = found->second;
    }
    for (const NvLink& link : machine_.nvlinks) {
      NvLink named = link;
      const auto name_of = [&](const std::string& address) {
        for (const Device& device : host_.devices)
          if (!device.address.empty() && device.address == address) return device.name;
        return std::string();
      };
      named.from = name_of(link.from);
      named.to = name_of(link.to);
      if (!named.from.empty() && (link.to.empty() || !named.to.empty()))
        host_.nvlinks.push_back(named);
    }
  }

  /// The window that the BARs of all GPUs need, if a BAR without an address is as large as the
  /// largest.
  [[nodiscard]] std::string window_text() const {
    std::uint64_t gpus = 0;
    Bytes largest;
    for (const Device& device : host_.devices) {
      gpus += device.kind == DeviceKind::gpu ? 1 : 0;
      if (device.kind == DeviceKind::gpu)
        largest = std::max(largest, device.bar_size.value_or(Bytes{}));
    }
    if (largest.count == 0) return {};
    return fmt::format(" {} GPUs with {} each need a window of {}.", gpus, to_string(largest),
                       to_string(largest * gpus));
  }

  /// Merges equal remarks on several devices into one.
  void add_remark(Remark remark) {
    const auto device = std::find_if(
        host_.devices.begin(), host_.devices.end(),
        [&](const Device& d) { return !d.address.empty() && d.address == remark.where; });
    if (device != host_.devices.end()) remark.where = device->name;
    for (Remark& other : host_.remarks) {
      if (other.rule != remark.rule || other.message != remark.message) continue;
      if (other.where != remark.where) other.where += ", " + remark.where;
      return;
    }
    host_.remarks.push_back(std::move(remark));
  }

  /// Remarks on the ports of a listing that shows no devices.
  void ports_without_devices() {
    if (!host_.devices.empty()) return;
    for (const Function& function : machine_.functions)
      if (function.acs) machine_.loose_acs.push_back({*function.acs, 1, {function.address}});
  }

  void loose_acs() {
    ports_without_devices();
    std::size_t all = 0;
    std::size_t redirecting = 0;
    std::size_t missed = 0;
    std::vector<std::string> ports;
    for (const LooseAcs& one : machine_.loose_acs) {
      all += one.count;
      if (!one.bits.redirects()) continue;
      redirecting += one.count;
      ports.insert(ports.end(), one.ports.begin(), one.ports.end());
      if (!one.bits.has(Acs::source_validation)) missed += one.count;
    }
    if (all == 0) return;
    if (redirecting == 0) {
      host_.remarks.push_back({"acs-clear", Severity::note, "host",
                               fmt::format("None of the {} ports listed redirects peer traffic: no "
                                           "ReqRedir+, CmpltRedir+ or EgressCtrl+. "
                                           "SrcValid+ alone is harmless.",
                                           all),
                               "ACS needs no change; check the IOMMU next."});
      return;
    }
    std::string message = fmt::format(
        "Of the {} ports listed {} redirect{} peer traffic (ReqRedir+, CmpltRedir+ or "
        "EgressCtrl+), whatever the BIOS says",
        all, redirecting, redirecting == 1 ? "s" : "");
    if (!ports.empty()) message += fmt::format(": {}.", fmt::join(ports, ", "));
    else message += "; these lines do not say which ports they are.";
    if (missed > 0)
      message += fmt::format(" {} of them {} SrcValid-, so that a search for SrcValid+ misses {}.",
                             missed, missed == 1 ? "has" : "have", missed == 1 ? "it" : "them");
    const std::string which =
        ports.empty() ? "Run lspci -vvv as root without grep to see which ports they are; clear"
                      : "Clear";
    host_.remarks.push_back({"acs-redirect", Severity::error, "host", message,
                             which + " the bits of those between GPU and NIC: setpci -s PORT "
                                     "ECAP_ACS+0x6.w=0 as root after each boot."});
  }

  Machine machine_;
  const nccl::Identifier& identifier_;
  Host host_;
  std::vector<std::vector<Index>> children_;
  std::vector<std::optional<DeviceKind>> kinds_;
  std::vector<bool> wanted_;
  std::vector<Index> tops_;
  std::map<std::string, int> node_of_root_;
  std::map<Index, int> node_of_top_;
  std::map<std::string, std::string> bridge_of_root_;
};

}  // namespace

Host make_host(Machine machine, const nccl::Identifier& identifier) {
  return HostMaker(std::move(machine), identifier).make();
}

}  // namespace gdr::observed
