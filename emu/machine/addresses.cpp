#include "emu/machine/addresses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/common/error.hpp"

namespace gdr::emu {
namespace {

constexpr std::size_t max_number = 255;  // a byte of the MAC and of the IP address

std::size_t number_of(const Host& host, const Device& device) {
  const auto digits = device.name.find_last_not_of("0123456789") + 1;
  const std::string text = device.name.substr(digits);
  if (text.empty() || text.size() > 3 || std::stoul(text) > max_number)
    throw InputError(fmt::format(
        "{}/{}: emulation names a {} after the number in its name, 0 to {}; call it {}0 or the "
        "like",
        host.name, device.name, to_string(device.kind), max_number, to_string(device.kind)));
  return std::stoul(text);
}

}  // namespace

std::vector<Numbered> numbered_devices(const Host& host, DeviceKind kind) {
  std::vector<Numbered> devices;
  for (std::size_t index = 0; index < host.devices.size(); ++index)
    if (host.devices[index].kind == kind)
      devices.push_back({number_of(host, host.devices[index]), index});
  std::sort(devices.begin(), devices.end(),
            [](const Numbered& a, const Numbered& b) { return a.number < b.number; });
  const auto twice =
      std::adjacent_find(devices.begin(), devices.end(),
                         [](const Numbered& a, const Numbered& b) { return a.number == b.number; });
  if (twice != devices.end())
    throw InputError(
        fmt::format("{}/{} and {}/{}: both names end in {}; emulation needs one number per {}",
                    host.name, host.devices[twice->device].name, host.name,
                    host.devices[(twice + 1)->device].name, twice->number, to_string(kind)));
  return devices;
}

std::string mac_address(std::size_t host, std::size_t nic) {
  return fmt::format("52:54:00:00:{:02x}:{:02x}", host, nic);
}

std::string ip_address(std::size_t host, std::size_t nic) {
  return fmt::format("10.{}.0.{}", nic, host + 1);
}

std::string management_mac_address(std::size_t host) {
  return fmt::format("52:54:00:01:{:02x}:00", host);
}

std::string management_address(std::size_t host) { return fmt::format("192.168.0.{}", host + 1); }

}  // namespace gdr::emu
