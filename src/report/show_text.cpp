#include "src/report/show_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gdr::report {
namespace {

constexpr std::size_t line_width = 80;

/// One line of the tree before its columns are aligned.
struct Row {
  std::size_t indent = 0;
  std::string label;                   ///< name and model
  std::array<std::string, 3> columns;  ///< link, address, ACS
  std::string extra;                   ///< settings that differ from what the model says
};

std::string yes_no(bool fact) { return fact ? "yes" : "no"; }

/// Breaks a line at spaces, or only at spaces after `after`, so that it fits; it continues under
/// `indent`.
std::string wrap(std::string_view line, std::size_t indent, std::string_view after = "") {
  const std::string stop = std::string(after) + " ";
  std::string text;
  while (line.size() > line_width || (!text.empty() && line.size() + indent > line_width)) {
    const std::size_t room = line_width - (text.empty() ? 0 : indent);
    std::size_t end = line.rfind(stop, room - after.size());
    if (end == std::string_view::npos || line.find_first_not_of(' ') > end)
      end = line.find(stop, room);
    end = end == std::string_view::npos ? line.size() : end + after.size();
    text += std::string(text.empty() ? 0 : indent, ' ').append(line.substr(0, end)) + "\n";
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return line.empty() ? text
                      : text + std::string(text.empty() ? 0 : indent, ' ').append(line) + "\n";
}

std::string extra_text(const Device& device) {
  std::vector<std::string> parts;
  if (!device.rdma_device.empty()) parts.push_back(device.rdma_device);
  if (device.port_rate) {
    const std::string rate = fmt::format("{:g}Gb/s", device.port_rate->bytes_per_second * 8e-9);
    parts.push_back(device.ports && *device.ports > 1 ? fmt::format("{} x {}", *device.ports, rate)
                                                      : rate);
  }
  if (device.link_layer) parts.emplace_back(to_string(*device.link_layer));
  if (device.gid_type) parts.push_back(fmt::format("RoCEv{}", *device.gid_type));
  if (device.lossless) parts.emplace_back(*device.lossless ? "lossless" : "lossy");
  if (device.max_payload) parts.push_back("MPS " + to_string(*device.max_payload));
  if (device.max_read_request) parts.push_back("MRRS " + to_string(*device.max_read_request));
  if (device.relaxed_ordering)
    parts.push_back(fmt::format("RO {}", *device.relaxed_ordering ? "on" : "off"));
  if (device.ats) parts.push_back(fmt::format("ATS {}", *device.ats ? "on" : "off"));
  if (device.bar_size) parts.push_back("BAR " + to_string(*device.bar_size));
  if (device.gdr) parts.push_back(fmt::format("GDR {}", yes_no(*device.gdr)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Row device_row(const Device& device, std::size_t indent) {
  Row row;
  row.indent = indent;
  row.label = device.name;
  if (!device.model.empty()) row.label += " " + device.model;
  row.columns = {link_text(device), device.address,
                 device.acs ? "ACS " + to_string(*device.acs) : ""};
  row.extra = extra_text(device);
  return row;
}

void add_children(const Host& host, const std::string& parent, std::size_t indent,
                  std::vector<Row>& rows) {
  for (const Device& device : host.devices) {
    if (device.under != parent) continue;
    rows.push_back(device_row(device, indent));
    add_children(host, device.name, indent + 2, rows);
  }
}

std::vector<Row> tree_rows(const Host& host) {
  std::vector<Row> rows;
  for (const Socket& socket : host.sockets) {
    rows.push_back({2, socket.name + (socket.model.empty() ? "" : " " + socket.model), {}, {}});
    for (const NumaNode& numa : host.numa_nodes) {
      if (numa.socket != socket.name) continue;
      rows.push_back({4, numa.name, {}, {}});
      add_children(host, numa.name, 6, rows);
    }
  }
  return rows;
}

/// Aligns label, link, address and ACS; what does not fit continues on its own line.
std::string render(const std::vector<Row>& rows) {
  std::size_t label_width = 0;
  std::array<std::size_t, 3> widths{};
  for (const Row& row : rows) {
    label_width = std::max(label_width, row.indent + row.label.size());
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row.columns[i].size());
  }
  label_width = std::min<std::size_t>(label_width, 40);
  std::string text;
  for (const Row& row : rows) {
    std::string line = std::string(row.indent, ' ') + row.label;
    std::size_t column = label_width;
    const auto put = [&](const std::string& cell, std::size_t at) {
      if (cell.empty()) return;
      if (line.size() < at) line.append(at - line.size(), ' ');
      if (line.size() + 2 + cell.size() > line_width) {
        text += line + "\n";
        line = std::string(row.indent, ' ');
      }
      line += "  " + cell;
    };
    for (std::size_t i = 0; i < widths.size(); ++i) {
      put(row.columns[i], column);
      if (widths[i] != 0) column += 2 + widths[i];
    }
    put(row.extra, 0);
    text += line + "\n";
  }
  return text;
}

std::string software_text(const Host& host) {
  const Software& software = host.software;
  std::vector<std::string> parts;
  if (host.virtual_machine)
    parts.emplace_back(*host.virtual_machine ? "virtual machine" : "bare metal");
  if (!software.kernel.empty()) parts.push_back("kernel " + software.kernel);
  if (software.iommu) parts.push_back(fmt::format("IOMMU {}", to_string(*software.iommu)));
  if (software.nvidia_peermem)
    parts.push_back("nvidia_peermem " + yes_no(*software.nvidia_peermem));
  if (software.open_kernel_modules)
    parts.push_back("open kernel modules " + yes_no(*software.open_kernel_modules));
  if (software.maps_peer_memory)
    parts.push_back("driver maps GPU memory for NICs " + yes_no(*software.maps_peer_memory));
  if (software.patched_driver)
    parts.push_back("patched driver " + yes_no(*software.patched_driver));
  if (!software.cuda.empty()) parts.push_back("CUDA " + software.cuda);
  if (!software.nccl_version.empty()) parts.push_back("NCCL " + software.nccl_version);
  if (!software.nccl_net_gdr_level.empty())
    parts.push_back("NCCL_NET_GDR_LEVEL=" + software.nccl_net_gdr_level);
  return parts.empty() ? "" : wrap(fmt::format("  {}", fmt::join(parts, ", ")), 4, ",");
}

}  // namespace

std::vector<std::vector<std::size_t>> equal_hosts(const Topology& topology) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < topology.hosts.size(); ++i) {
    Host host = topology.hosts[i];
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      host.name = topology.hosts[group.front()].name;
      return host == topology.hosts[group.front()];
    });
    if (same != groups.end()) same->push_back(i);
    else groups.push_back({i});
  }
  return groups;
}

std::string host_names(const Topology& topology, const std::vector<std::size_t>& hosts) {
  std::vector<std::string> names;
  for (const std::size_t host : hosts) names.push_back(topology.hosts.at(host).name);
  if (names.size() > 4)
    return fmt::format("{}, {}, ..., {} ({} hosts)", names[0], names[1], names.back(),
                       names.size());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string link_text(const Device& device) {
  if (device.link && device.link_capability && *device.link != *device.link_capability)
    return to_string(*device.link) + " of " + to_string(*device.link_capability);
  if (device.link) return to_string(*device.link);
  return device.link_capability ? "up to " + to_string(*device.link_capability) : "";
}

std::vector<std::pair<std::string, int>> nvlink_peers(const Host& host, std::string_view gpu) {
  std::vector<std::pair<std::string, int>> peers;
  const auto add = [&](const std::string& name, int count) {
    const auto same = std::find_if(peers.begin(), peers.end(),
                                   [&](const auto& peer) { return peer.first == name; });
    if (same != peers.end()) same->second += count;
    else peers.emplace_back(name, count);
  };
  for (const NvLink& link : host.nvlinks) {
    if (link.from == gpu) add(link.to.empty() ? std::string(hidden_nvswitch) : link.to, link.count);
    else if (link.to == gpu) add(link.from, link.count);
  }
  return peers;
}

std::vector<std::string> nvlink_lines(const Host& host) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;  // peers, GPUs
  for (const Device& device : host.devices) {
    std::vector<std::string> parts;
    for (const auto& [name, count] : nvlink_peers(host, device.name))
      parts.push_back(fmt::format("{} x {}", count, name));
    if (device.kind != DeviceKind::gpu || parts.empty()) continue;
    const std::string peers = fmt::format("{}", fmt::join(parts, ", "));
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const auto& line) { return line.first == peers; });
    if (same != lines.end()) same->second.push_back(device.name);
    else lines.push_back({peers, {device.name}});
  }
  std::vector<std::string> text;
  for (const auto& [peers, gpus] : lines) {
    std::string who = fmt::format("{}", fmt::join(gpus, ", "));
    if (gpus.size() > 2) who = fmt::format("each of {} to {}", gpus.front(), gpus.back());
    text.push_back(fmt::format("{}: {}", who, peers));
  }
  return text;
}

std::string show_text(const Topology& topology) {
  std::string text = topology.name + "\n";
  if (!topology.description.empty()) text += wrap("  " + topology.description, 2);
  for (const auto& group : equal_hosts(topology)) {
    const Host& host = topology.hosts[group.front()];
    text += "\n" + host_names(topology, group) + (group.size() > 1 ? ": the same\n" : "\n");
    text += software_text(host) + render(tree_rows(host));
    for (const std::string& line : nvlink_lines(host)) text += wrap("  NVLink " + line, 4, ",");
  }
  if (topology.fabric) {
    std::vector<std::string> parts{topology.fabric->model};
    if (topology.fabric->mtu) parts.push_back("MTU " + to_string(*topology.fabric->mtu));
    if (const auto switches = topology.fabric->switches) {
      const std::string some =
          fmt::format("{} switch{} between hosts", *switches, *switches == 1 ? "" : "es");
      parts.push_back(*switches == 0 ? "a cable between hosts" : some);
    }
    text += "\n" + wrap(fmt::format("fabric: {}", fmt::join(parts, ", ")), 2, ",");
  }
  return text;
}

}  // namespace gdr::report
