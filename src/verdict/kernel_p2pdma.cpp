#include "src/verdict/kernel_p2pdma.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace gdr {
namespace {

struct ListedBridge {
  std::string_view id;
  bool same_bridge_only;  ///< REQ_SAME_HOST_BRIDGE
};

/// pci_p2pdma_whitelist of Linux 7.1, without the accelerators that are on root buses of their own.
constexpr std::array<ListedBridge, 12> listed{{{"8086:3c00", true},
                                               {"8086:3c01", true},
                                               {"8086:2f00", true},
                                               {"8086:2f01", true},
                                               {"8086:2030", false},
                                               {"8086:2031", false},
                                               {"8086:2032", false},
                                               {"8086:2033", false},
                                               {"8086:2020", false},
                                               {"8086:09a2", false},
                                               {"8086:0b25", false},
                                               {"8086:0cfe", false}}};

constexpr int zen_family = 0x17;

bool is_zen(const CpuModel& cpu) {
  return std::any_of(cpu.cpuid.begin(), cpu.cpuid.end(), [](const CpuIdentity& id) {
    return id.vendor == "AuthenticAMD" && id.family >= zen_family;
  });
}

/// The host bridge above a device, if the file has it.
std::optional<std::size_t> bridge_above(const Host& host, std::size_t device) {
  for (std::optional<std::size_t> at = device; at; at = device_index(host, host.devices[*at].under))
    if (host.devices[*at].kind == DeviceKind::host_bridge) return at;
  return std::nullopt;
}

enum class Listing { no, yes, same_bridge, unknown };

/// A host bridge may show any of its CPU model's identities, so they must agree.
Listing listing_of(const std::vector<std::string>& ids) {
  std::optional<Listing> common;
  for (const std::string& id : ids) {
    const auto* found = std::find_if(listed.begin(), listed.end(),
                                     [&](const ListedBridge& bridge) { return bridge.id == id; });
    const Listing one = found == listed.end()
                            ? Listing::no
                            : (found->same_bridge_only ? Listing::same_bridge : Listing::yes);
    if (common && *common != one) return Listing::unknown;
    common = one;
  }
  return common.value_or(Listing::unknown);
}

Listing listing_of(const Hardware& hardware, DeviceId device) {
  const Host& host = hardware.host_of(device);
  const auto bridge = bridge_above(host, device.device);
  if (bridge && !host.devices[*bridge].pci_id.empty())
    return listing_of({host.devices[*bridge].pci_id});
  const auto cpu = hardware.cpu_above(device);
  if (!cpu.known() || host.virtual_machine.value_or(false))
    return Listing::unknown;  // a guest's host bridge is QEMU's
  return listing_of(cpu.value->host_bridge_ids);
}

KernelP2pdma through_host_bridge(const Hardware& hardware, DeviceId a, DeviceId b) {
  const auto cpu = hardware.cpu_above(a);
  if (cpu.known() && is_zen(*cpu.value)) return KernelP2pdma::through_host_bridge;
  const Listing one = listing_of(hardware, a);
  const Listing other = listing_of(hardware, b);
  if (one == Listing::no || other == Listing::no) return KernelP2pdma::refused;
  if (one == Listing::unknown || other == Listing::unknown) return KernelP2pdma::unknown;
  if (one == Listing::yes && other == Listing::yes) return KernelP2pdma::through_host_bridge;
  const Host& host = hardware.host_of(a);
  const auto bridge_a = bridge_above(host, a.device);
  const auto bridge_b = bridge_above(host, b.device);
  if (bridge_a && bridge_b)
    return bridge_a == bridge_b ? KernelP2pdma::through_host_bridge : KernelP2pdma::refused;
  return hardware.graph().numa_of(a) != hardware.graph().numa_of(b) ? KernelP2pdma::refused
                                                                    : KernelP2pdma::unknown;
}

}  // namespace

KernelP2pdma kernel_p2pdma(const Hardware& hardware, const PeerRoutes& routes, DeviceId a,
                           DeviceId b) {
  const bool hidden = hardware.host_of(a).virtual_machine.value_or(false);
  const bool only_pcie = std::all_of(routes.direct.begin(), routes.direct.end(),
                                     [](const Hop& hop) { return hop.kind == HopKind::pcie; });
  if (only_pcie && routes.direct.empty()) return KernelP2pdma::direct;
  if (!routes.parts_at_switch)
    return hidden ? KernelP2pdma::unknown : through_host_bridge(hardware, a, b);
  bool redirects = false;
  bool all_known = true;
  for (const DeviceId side : {a, b})
    for (const DeviceId port : ports_below(hardware.graph(), side, routes.turn)) {
      const Fact<Acs> acs = hardware.port_acs(port);
      redirects = redirects || acs.value.redirects();
      all_known = all_known && acs.known();
    }
  if (!redirects && !all_known) return KernelP2pdma::unknown;
  return redirects ? through_host_bridge(hardware, a, b) : KernelP2pdma::direct;
}

}  // namespace gdr
