#include "emu/wiring.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <system_error>

#include "common/error.hpp"
#include "emu/addresses.hpp"

namespace gdr::emu {
namespace {

void add_cable(HostWiring& host, const std::string& nic, int first_descriptor, UniqueFd end) {
  host.arguments.insert(host.arguments.end(),
                        {"-netdev", fmt::format("stream,id={},server=off,addr.type=fd,addr.str={}", nic,
                                                first_descriptor + static_cast<int>(host.descriptors.size()))});
  host.descriptors.push_back(std::move(end));
}

void add_nothing(HostWiring& host, const Numbered& nic, const std::string& name) {
  host.arguments.insert(host.arguments.end(), {"-netdev", fmt::format("hubport,id={},hubid={}", name, nic.number)});
}

}  // namespace

std::vector<HostWiring> wire_hosts(const Topology& topology, int first_descriptor) {
  if (topology.hosts.size() > 2)
    throw InputError(fmt::format("{}: has {} hosts; emulation joins two so far", topology.name, topology.hosts.size()));
  std::vector<HostWiring> wiring(topology.hosts.size());
  std::map<std::size_t, UniqueFd> far_ends;  // by NIC number, of the cables that hang from the first host
  for (std::size_t index = 0; index < topology.hosts.size(); ++index) {
    const Host& host = topology.hosts[index];
    for (const Numbered& nic : numbered_devices(host, DeviceKind::nic)) {
      const std::string& name = host.devices[nic.device].name;
      const auto waiting = far_ends.find(nic.number);
      if (index == 1 && waiting != far_ends.end()) {
        add_cable(wiring[index], name, first_descriptor, std::move(waiting->second));
      } else if (index == 0 && topology.hosts.size() == 2) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
          throw std::system_error(errno, std::generic_category(), "socketpair");
        add_cable(wiring[index], name, first_descriptor, UniqueFd(ends[0]));
        far_ends[nic.number] = UniqueFd(ends[1]);
      } else {
        add_nothing(wiring[index], nic, name);
      }
    }
  }
  return wiring;
}

}  // namespace gdr::emu
