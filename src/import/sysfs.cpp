#include "src/import/sysfs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>

#include "src/common/terminal_text.hpp"
#include "src/import/config_space.hpp"
#include "src/import/host_facts.hpp"
#include "src/nccl/xml/facts.hpp"

namespace gdr::observed {
namespace {

std::optional<unsigned> hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty()
             ? std::optional(value)
             : std::nullopt;
}

std::string last_part(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

/// Lines of `resource` have start, end and flags. The first six are BARs; flag 0x2000 is
/// prefetchable.
std::vector<Bar> bars_of(std::string_view resource) {
  std::vector<Bar> bars;
  int region = 0;
  for (const std::string_view line : text::lines(resource)) {
    const auto words = text::split_words(line);
    if (region >= 6 || words.size() != 3) break;
    std::uint64_t values[3] = {0, 0, 0};
    bool good = true;
    for (std::size_t i = 0; i < 3; ++i) {
      std::string_view word = words[i];
      if (word.starts_with("0x")) word.remove_prefix(2);
      good = good && std::from_chars(word.data(), word.data() + word.size(), values[i], 16).ec ==
                         std::errc{};
    }
    constexpr std::uint64_t prefetchable = 0x2000;
    constexpr std::uint64_t unset = 0x20000000;
    if (good && (values[2] & prefetchable) != 0) {
      const bool placed = values[1] > values[0] && values[0] != 0 && (values[2] & unset) == 0;
      if (values[1] > values[0]) bars.push_back({region, Bytes{values[1] - values[0] + 1}, placed});
    }
    ++region;
  }
  return bars;
}

class Reader {
 public:
  explicit Reader(const CapturedFiles& files) : files_(files) {}

  Machine read() {
    for (const std::string& address : files_.list("sys/bus/pci/devices"))
      if (const std::string good = full_address(address); !good.empty())
        add(good, path_of("sys/bus/pci/devices/" + address));
    for (std::size_t i = 0; i < machine_.functions.size(); ++i)
      if (const auto found = index_.find(above_[i]); found != index_.end())
        machine_.functions[i].above = found->second;
    infiniband();
    numa();
    processor();
    software();
    machine_.formats = {"sysfs"};
    return std::move(machine_);
  }

 private:
  /// The target of a link, whether it was captured or not.
  [[nodiscard]] std::string path_of(const std::string& path) const {
    if (std::string there = files_.resolve(path); !there.empty()) return there;
    const auto link = files_.links().find(path);
    return link != files_.links().end() ? link->second : path;
  }

  void add(const std::string& address, const std::string& path) {
    index_.emplace(address, machine_.functions.size());
    Function& function = machine_.functions.emplace_back();
    function.address = address;
    above_.emplace_back();
    // sys/devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0
    for (std::string_view rest = path; !rest.empty();) {
      const auto end = std::min(rest.find('/'), rest.size());
      const std::string_view part = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (part.starts_with("pci") && part.find(':') != std::string_view::npos) {
        function.root_bus = std::string(part.substr(3));
        above_.back().clear();
      } else if (!rest.empty()) {
        if (std::string bridge = full_address(part); !bridge.empty())
          above_.back() = std::move(bridge);
      }
    }
    attributes(function, path + "/");
  }

  void attributes(Function& function, const std::string& at) {
    if (const std::string* config = files_.file(at + "config"))
      read_config_space(std::vector<std::uint8_t>(config->begin(), config->end()), function);
    const auto vendor = hex(files_.line(at + "vendor"));
    const auto device = hex(files_.line(at + "device"));
    if (vendor && device && *vendor <= 0xffff && *device <= 0xffff)
      function.pci_id = fmt::format("{:04x}:{:04x}", *vendor, *device);
    if (const auto number = hex(files_.line(at + "class"))) function.pci_class = number;
    if (const auto node = text::whole_int(files_.line(at + "numa_node"))) function.numa_node = node;
    const auto link = [&](const char* which) {
      return nccl::parse_link(files_.line(at + which + "_link_speed"),
                              files_.line(at + which + "_link_width"));
    };
    if (const auto now = link("current")) function.link = now;
    if (const auto most = link("max")) function.link_capability = most;
    if (const std::string* resource = files_.file(at + "resource"))
      function.bars = bars_of(*resource);
    const auto target = [&](const char* name) {
      const auto found = files_.links().find(at + name);
      return found != files_.links().end() ? last_part(found->second) : std::string();
    };
    if (const auto group = text::whole_int(target("iommu_group"))) function.iommu_group = group;
    function.driver = text::printable(target("driver"), 40);
    for (const std::string& name : interfaces_of(files_, at))
      function.networks.push_back(text::printable(name, 40));
    if (const auto devices = files_.list(at + "infiniband"); !devices.empty())
      function.rdma_device = text::printable(devices.front(), 40);
    if (const std::string type = files_.line(at + "iommu_group/type"); !type.empty())
      machine_.software.iommu = type == "identity" ? IommuMode::passthrough : IommuMode::translate;
  }

  void infiniband() {
    for (const std::string& name : files_.list("sys/class/infiniband")) {
      const std::string base = path_of("sys/class/infiniband/" + name);
      std::string address = full_address(last_part(path_of(base + "/device")));
      // sys/devices/.../0000:c1:00.0/infiniband/mlx5_0
      for (std::string_view at = base; address.empty() && at.find('/') != std::string_view::npos;
           at = at.substr(0, at.rfind('/')))
        address = full_address(last_part(at));
      Function* function = find(machine_, address);
      if (function == nullptr) continue;
      function->rdma_device = text::printable(name, 40);
      const auto ports = files_.list(base + "/ports");
      if (!ports.empty()) function->rdma_ports = static_cast<int>(ports.size());
      // SoftRoCE speaks Ethernet on any NIC.
      const bool software = base.starts_with("sys/devices/virtual/");
      for (const std::string& port : ports) {
        const std::string layer =
            software ? std::string() : files_.line(base + "/ports/" + port + "/link_layer");
        if (layer == "InfiniBand") function->link_layer = LinkLayer::infiniband;
        if (layer == "Ethernet") function->link_layer = LinkLayer::ethernet;
        const std::string rate = files_.line(base + "/ports/" + port + "/rate");
        const bool active =
            files_.line(base + "/ports/" + port + "/state").find("ACTIVE") != std::string::npos;
        const auto gigabits = text::leading_int(rate);
        // The kernel prints FDR's rounded rate before its 64b/66b coding.
        const double coding = rate.ends_with("FDR)") ? 14.0625 / 14 * 64 / 66 : 1;
        if (active && gigabits && *gigabits >= 1 && *gigabits <= 3200)
          function->port_rate = Bandwidth{*gigabits * coding * 1.25e8};
      }
    }
  }

  void numa() {
    std::map<int, int> package_of_cpu;
    for (const std::string& name : files_.list("sys/devices/system/cpu")) {
      const auto cpu = name.starts_with("cpu") ? text::whole_int(std::string_view(name).substr(3))
                                               : std::nullopt;
      const auto package = text::whole_int(
          files_.line("sys/devices/system/cpu/" + name + "/topology/physical_package_id"));
      if (cpu && package && *package >= 0) package_of_cpu[*cpu] = *package;
    }
    std::set<int> packages;
    for (const auto& [cpu, package] : package_of_cpu) packages.insert(package);
    if (!packages.empty()) machine_.processor.packages = static_cast<int>(packages.size());
    for (const std::string& name : files_.list("sys/devices/system/node")) {
      const auto id = name.starts_with("node") ? text::whole_int(std::string_view(name).substr(4))
                                               : std::nullopt;
      if (!id || *id < 0 || *id > 4095) continue;
      NumaNode node{*id, {}};
      const auto first =
          text::leading_int(files_.line("sys/devices/system/node/" + name + "/cpulist"));
      if (first && package_of_cpu.contains(*first)) node.package = package_of_cpu[*first];
      machine_.numa_nodes.push_back(node);
    }
    if (!machine_.numa_nodes.empty())
      machine_.processor.numa_nodes = static_cast<int>(machine_.numa_nodes.size());
  }

  void processor() {
    const std::string* info = files_.file("proc/cpuinfo");
    if (info == nullptr) return;
    Processor& processor = machine_.processor;
    for (const std::string_view line : text::lines(*info)) {
      if (line.empty() && !processor.vendor.empty()) break;
      const auto colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      const std::string_view key = text::trim(line.substr(0, colon));
      const std::string_view value = text::trim(line.substr(colon + 1));
      if (key == "vendor_id") processor.vendor = text::printable(value, 20);
      if (key == "cpu family") processor.family = text::whole_int(value);
      if (key == "model") processor.model = text::whole_int(value);
      if (key == "model name") processor.name = text::printable(value, 80);
      if (key == "flags" && value.find(" hypervisor") != std::string_view::npos)
        machine_.virtual_machine = true;
    }
  }

  void software() {
    for (const char* file :
         {"sys/class/dmi/id/sys_vendor", "sys/devices/virtual/dmi/id/sys_vendor"})
      if (const std::string vendor = files_.line(file);
          vendor == "QEMU" || vendor.starts_with("VMware") || vendor.starts_with("Xen"))
        machine_.virtual_machine = true;
    HostFactsReader facts;
    for (const char* file : {"proc/cmdline", "proc/version", "proc/driver/nvidia/version"})
      if (const std::string* content = files_.file(file))
        for (const std::string_view line : text::lines(*content)) (void)facts.line(line);
    const std::optional<IommuMode> by_group = machine_.software.iommu;
    machine_.software = facts.take().software;
    if (by_group) machine_.software.iommu = by_group;
    if (const std::string* modules = files_.file("proc/modules")) {
      machine_.software.nvidia_peermem = false;
      for (const std::string_view line : text::lines(*modules))
        if (line.starts_with("nvidia_peermem ") || line.starts_with("nv_peer_mem "))
          machine_.software.nvidia_peermem = true;
    }
    if (files_.file("sys/module/nvidia_peermem/version") != nullptr)
      machine_.software.nvidia_peermem = true;
    if (const std::string kernel = files_.line("proc/sys/kernel/osrelease");
        !kernel.empty() && kernel.front() >= '0' && kernel.front() <= '9')
      machine_.software.kernel = text::printable(kernel, 80);
  }

  const CapturedFiles& files_;
  Machine machine_;
  std::map<std::string, std::size_t> index_;
  std::vector<std::string> above_;
};

}  // namespace

Machine read_sysfs(const CapturedFiles& files) { return Reader(files).read(); }

}  // namespace gdr::observed
