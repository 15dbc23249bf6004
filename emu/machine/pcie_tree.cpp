#include "emu/machine/pcie_tree.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/machine/addresses.hpp"
#include "emu/machine/qemu_option.hpp"
#include "src/common/check.hpp"
#include "src/common/error.hpp"

namespace gdr::emu {
namespace {

constexpr std::size_t max_host_bridges = 24;  // slots of pcie.0 that q35 and our own devices leave
constexpr std::size_t max_ports = 32;         // device numbers of a bus
constexpr std::size_t max_functions = 8;
constexpr std::size_t max_buses = 256;
constexpr int max_generation = 4;  // pcie-root-port of QEMU 7.2

/// Devices that share a link: one, or the functions of one.
using Slot = std::vector<std::size_t>;

std::string device_address(const Device& device) {
  return device.address.substr(0, device.address.rfind('.'));
}

/// What hangs below a place, in file order.
std::vector<Slot> slots_below(const Host& host, const std::string& place) {
  std::vector<Slot> slots;
  for (std::size_t index = 0; index < host.devices.size(); ++index) {
    const Device& device = host.devices[index];
    if (device.under != place || device.kind == DeviceKind::host_bridge) continue;
    const auto shared = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) {
      const Device& first = host.devices[slot.front()];
      return !device.address.empty() && device_address(first) == device_address(device);
    });
    if (shared == slots.end()) slots.push_back({index});
    else shared->push_back(index);
  }
  return slots;
}

class Builder {
 public:
  Builder(const Host& host, std::size_t host_index, const std::vector<GpuMemory>& gpus,
          const GpuFile& gpu_file)
      : host_(host), host_index_(host_index), gpus_(gpus), gpu_file_(gpu_file) {
    tree_.buses = 1;
    tree_.places.resize(host.devices.size());
  }

  PcieTree build() {
    for (std::size_t numa = 0; numa < host_.numa_nodes.size(); ++numa) {
      for (const Device& device : host_.devices)
        if (device.kind == DeviceKind::host_bridge && device.under == host_.numa_nodes[numa].name)
          add_host_bridge(device.name, {device.name, numa}, slots_below(host_, device.name));
      for (const Slot& slot : slots_below(host_, host_.numa_nodes[numa].name))
        add_host_bridge(host_.devices[slot.front()].name + ".bridge", {"", numa}, {slot});
    }
    if (tree_.roots.size() > max_host_bridges)
      refuse(fmt::format("{} host bridges; QEMU's q35 has room for {}", tree_.roots.size(),
                         max_host_bridges));
    if (tree_.buses > max_buses)
      refuse(fmt::format("its tree takes {} PCI buses; QEMU has one PCI domain of {}", tree_.buses,
                         max_buses));
    return std::move(tree_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw InputError(fmt::format("{}: cannot be emulated: {}", host_.name, reason));
  }

  void add(const char* option, std::string value) {
    tree_.arguments.emplace_back(option);
    tree_.arguments.push_back(std::move(value));
  }

  void add_host_bridge(const std::string& id, RootBus root, const std::vector<Slot>& slots) {
    if (!slots.empty()) root.first_port = place_of(slots.front(), 0);
    // The firmware numbers the buses below a host bridge consecutively from the bridge's own, in
    // the order of their ports.
    add("-device", fmt::format("pxb-pcie,id={},bus=pcie.0,bus_nr={},numa_node={}", id,
                               std::min<std::size_t>(tree_.buses, 255), root.numa));
    tree_.roots.push_back(std::move(root));
    ++tree_.buses;
    add_slots(id, "pcie-root-port", slots);
  }

  void add_slots(const std::string& bus, const std::string& port, const std::vector<Slot>& slots) {
    if (slots.size() > max_ports)
      refuse(fmt::format("{} has {} ports; a PCI bus has {} device numbers", bus, slots.size(),
                         max_ports));
    for (std::size_t number = 0; number < slots.size(); ++number) {
      const Device& first = host_.devices[slots[number].front()];
      std::string value = fmt::format("{},id={}.port,bus={},addr={:#x},chassis=1,slot={}", port,
                                      first.name, bus, number, slots[number].front() + 1);
      if (port == "pcie-root-port") value += ",hotplug=off" + link_of(first);
      add("-device", value);
      ++tree_.buses;
      add_functions(slots[number]);
    }
  }

  static std::string link_of(const Device& device) {
    static constexpr const char* speeds[] = {"", "2_5", "5", "8", "16"};
    if (!device.link) return "";
    return fmt::format(",x-speed={},x-width={}",
                       speeds[std::min(device.link->generation, max_generation)],
                       device.link->width);
  }

  void add_functions(const Slot& slot) {
    const Device& first = host_.devices[slot.front()];
    if (slot.size() > max_functions)
      refuse(fmt::format("{} has {} functions; a device has {}", first.name, slot.size(),
                         max_functions));
    for (std::size_t function = 0; function < slot.size(); ++function) {
      const Device& device = host_.devices[slot[function]];
      tree_.places[slot[function]] = place_of(slot, function);
      std::string place =
          fmt::format(",id={},bus={}.port,addr=0x0.{:#x}", device.name, first.name, function);
      if (slot.size() > 1 && function == 0) place += ",multifunction=on";
      add("-device", function_of(device, slot[function]) + place);
      if (device.kind != DeviceKind::pci_switch) continue;
      ++tree_.buses;
      add_slots(device.name, "xio3130-downstream", slots_below(host_, device.name));
    }
  }

  std::string function_of(const Device& device, std::size_t index) {
    switch (device.kind) {
      case DeviceKind::pci_switch:
        return "x3130-upstream";
      case DeviceKind::gpu: {
        const GpuMemory& memory = memory_of(index);
        add("-object",
            fmt::format("memory-backend-file,id={}.memory,size={},share=on,mem-path={}",
                        device.name, memory.size.count, option_value(gpu_file_(device))));
        return fmt::format("ivshmem-plain,memdev={}.memory", device.name);
      }
      case DeviceKind::nic: {
        const auto nics = numbered_devices(host_, DeviceKind::nic);
        const auto nic = std::find_if(nics.begin(), nics.end(),
                                      [&](const Numbered& n) { return n.device == index; });
        return fmt::format(
            "virtio-net-pci,netdev={},mac={},host_mtu=4200,rx_queue_size=1024,romfile=",
            device.name, mac_address(host_index_, nic->number));
      }
      case DeviceKind::nvme:
        return fmt::format("nvme,serial={}", device.name);
      case DeviceKind::host_bridge:
        check(false, "a host bridge is no function");
        break;
      case DeviceKind::nvswitch:
      case DeviceKind::other:
        break;
    }
    return "pvpanic-pci";
  }

  const GpuMemory& memory_of(std::size_t device) const {
    const auto found = std::find_if(gpus_.begin(), gpus_.end(),
                                    [&](const GpuMemory& gpu) { return gpu.device == device; });
    check(found != gpus_.end(), "every GPU has memory");
    return *found;
  }

  static PciPlace place_of(const Slot& slot, std::size_t function) {
    return (slot.front() + 1) * max_functions + function;
  }

  const Host& host_;
  std::size_t host_index_;
  const std::vector<GpuMemory>& gpus_;
  const GpuFile& gpu_file_;
  PcieTree tree_;
};

}  // namespace

PcieTree pcie_tree(const Host& host, std::size_t host_index, const std::vector<GpuMemory>& gpus,
                   const GpuFile& gpu_file) {
  return Builder(host, host_index, gpus, gpu_file).build();
}

}  // namespace gdr::emu
