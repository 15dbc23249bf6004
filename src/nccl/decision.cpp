#include "src/nccl/decision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/common/error.hpp"
#include "src/common/terminal_text.hpp"
#include "src/hardware/hardware.hpp"
#include "src/nccl/distance.hpp"
#include "src/nccl/history.hpp"
#include "src/nccl/paths.hpp"

namespace gdr::nccl {
namespace {

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found != environment.end() ? found->second : std::string();
}

std::optional<int> number_of(const Environment& environment, const std::string& name) {
  const std::string value = value_of(environment, name);
  if (value.empty()) return std::nullopt;
  const auto number = text::whole_int(value);
  if (!number)
    throw InputError(fmt::format("{}={}: a number is expected", name, text::printable(value, 40)));
  return number;
}

/// The host with only the NICs that NCCL_IB_HCA selects; marks those that cannot register GPU
/// memory.
Topology seen_by_nccl(const Topology& topology, std::size_t host_index,
                      const Environment& environment, std::vector<std::string>& notes) {
  Topology seen = topology;
  seen.hosts = {topology.hosts.at(host_index)};
  Host& host = seen.hosts.front();
  const std::string spec = value_of(environment, "NCCL_IB_HCA");
  if (!spec.empty()) {
    std::erase_if(host.devices, [&](const Device& device) {
      return device.kind == DeviceKind::nic && !hca_selected(spec, device.rdma_device, 1);
    });
    std::erase_if(host.distances, [&](const StatedDistance& stated) {
      return !device_index(host, stated.from) || !device_index(host, stated.to);
    });
    if (std::none_of(host.devices.begin(), host.devices.end(),
                     [](const Device& device) { return device.kind == DeviceKind::nic; }))
      notes.push_back(
          fmt::format("NCCL_IB_HCA={} leaves no NIC: NCCL falls back to sockets.", spec));
  }
  const Software& software = host.software;
  const bool no_dma_buf =
      software.open_kernel_modules == false || value_of(environment, "NCCL_DMABUF_ENABLE") == "0";
  if (software.nvidia_peermem == false && no_dma_buf)
    for (Device& device : host.devices)
      if (device.kind == DeviceKind::nic && !device.gdr) device.gdr = false;
  if (value_of(environment, "NCCL_IB_DISABLE") == "1")
    notes.emplace_back("NCCL_IB_DISABLE=1: NCCL uses sockets and no GPUDirect RDMA.");
  return seen;
}

Settings settings_of(const std::string& version, const Environment& environment,
                     std::vector<std::string>& notes) {
  const int number = version_number(version);
  Settings settings;
  settings.version = version;
  settings.net_gdr_level = value_of(environment, "NCCL_NET_GDR_LEVEL");
  if (settings.net_gdr_level.empty())
    settings.net_gdr_level = value_of(environment, "NCCL_IB_GDR_LEVEL");
  settings.p2p_level = value_of(environment, "NCCL_P2P_LEVEL");
  settings.net_gdr_read = number_of(environment, "NCCL_NET_GDR_READ");
  if (const auto c2c = number_of(environment, "NCCL_NET_GDR_C2C")) settings.net_gdr_c2c = *c2c != 0;
  settings.pxn = number_of(environment, "NCCL_PXN_DISABLE").value_or(0) == 0;
  for (const std::string& level : {settings.net_gdr_level, settings.p2p_level})
    if (!level.empty() && !parse_level(level))
      notes.push_back(
          fmt::format("\"{}\" is not a level: NCCL uses its default.", text::printable(level, 40)));
  if (settings.net_gdr_c2c && number < 22600)
    notes.push_back(
        fmt::format("NCCL {} does not know NCCL_NET_GDR_C2C, which came with 2.26.", version));
  if (const auto index = number_of(environment, "NCCL_IB_GID_INDEX"); index && *index >= 0)
    notes.push_back(
        fmt::format("NCCL_IB_GID_INDEX={}: NCCL uses this GID on all NICs{}.", *index,
                    number >= 22100 ? "; without it NCCL finds the RoCE v2 entry by itself" : ""));
  return settings;
}

/// Before 2.11.4 NCCL's table of link speeds ended at 16 GT/s; faster links counted as 8 GT/s.
void note_unknown_speeds(const Topology& topology, const ModelLibrary& models,
                         const std::string& version, std::vector<std::string>& notes) {
  if (version_number(version) >= 21104) return;
  const gdr::Graph graph(topology);
  const Hardware hardware(graph, models);
  std::string names;
  std::size_t count = 0;
  for (const DeviceKind kind : {DeviceKind::gpu, DeviceKind::nic})
    for (const DeviceId id : devices_of_kind(topology, kind))
      if (const auto link = hardware.link(id).value; link && link->generation >= 5) {
        if (count++ < 2)
          names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", get(topology, id).name,
                               to_string(*link));
      }
  if (count == 0) return;
  notes.push_back(
      fmt::format("NCCL {} does not know links faster than 16 GT/s and counts each lane of {}{} as "
                  "a Gen3 lane; 2.11.4 and later know them.",
                  version, names, count > 2 ? fmt::format(" and {} more", count - 2) : ""));
}

std::string reason_of(const PairDecision& pair, const Device& gpu, const Device& nic) {
  const std::string far =
      fmt::format("the path is {}, the level {}", to_string(pair.distance), to_string(pair.level));
  if (nic.gdr == false)
    return "The NIC cannot register GPU memory (neither nvidia-peermem nor dma-buf, or its plugin "
           "reports so).";
  if (gpu.gdr == false) return "The GPU does not support GPUDirect RDMA.";
  if (!pair.receive && pair.distance > pair.level) return fmt::format("Too far: {}.", far);
  if (!pair.receive) return fmt::format("Not used: {}.", far);
  if (pair.send == false)
    return fmt::format(
        "Used for receiving, since {}; to send, the NIC would have to read GPU memory, which this "
        "version allows only with NVLink or from sm 80 on (NCCL_NET_GDR_READ=1).",
        far);
  return fmt::format("Used: {}.", far);
}

/// NCCL 2.3 to 2.11 takes distances from the PCIe tree and has one rule for distance and one for
/// reading.
void decide_old(Decision& decision, const Topology& seen, const ModelLibrary& models,
                const Settings& settings) {
  const int version = version_number(settings.version);
  const gdr::Graph graph(seen);
  const Hardware hardware(graph, models);
  const NcclDistances distances(hardware);
  const Host& host = seen.hosts.front();
  int default_level = path_number(version, PathType::phb).value_or(2);
  if (!strict_comparison(version)) default_level = path_number(version, PathType::pxb).value_or(3);
  const auto set = text::whole_int(settings.net_gdr_level);
  std::optional<int> level = strict_comparison(version) ? set : std::nullopt;
  if (!strict_comparison(version))
    if (const auto type = parse_level(settings.net_gdr_level)) level = path_number(version, *type);
  const int limit = level.value_or(default_level);
  int rank = 0;
  for (const DeviceId gpu : devices_of_kind(seen, DeviceKind::gpu)) {
    decision.gpus.push_back(gpu.device);
    decision.nics_of_gpu.emplace_back();
    const bool nvlink =
        std::any_of(host.nvlinks.begin(), host.nvlinks.end(), [&](const NvLink& link) {
          return link.from == host.devices[gpu.device].name ||
                 link.to == host.devices[gpu.device].name;
        });
    int net = 0;
    for (const DeviceId nic : devices_of_kind(seen, DeviceKind::nic)) {
      if (hardware.nic(nic).rdma.value == "none") continue;
      PairDecision pair;
      pair.gpu = gpu.device;
      pair.nic = nic.device;
      pair.rank = pair.gpu_dev = rank;
      pair.net = net++;
      pair.wired = pair.distance = distances.type(gpu, nic);
      const bool has_node = version >= 20400 && version < 20600;
      if (has_node && pcie_distance(graph, gpu, nic) == Distance::node) pair.number = 3;
      const auto number = pair.number ? pair.number : path_number(version, pair.distance);
      const bool able =
          host.devices[nic.device].gdr != false && host.devices[gpu.device].gdr != false;
      pair.receive =
          able && number && (strict_comparison(version) ? *number < limit : *number <= limit);
      const auto word = path_word(version, limit);
      for (int type = 0; word && type <= static_cast<int>(PathType::dis); ++type)
        if (to_string(static_cast<PathType>(type)) == (*word == "SOC"    ? "SYS"
                                                       : *word == "NODE" ? "PHB"
                                                                         : *word))
          pair.level = static_cast<PathType>(type);
      const bool one_gpu = devices_of_kind(seen, DeviceKind::gpu).size() == 1 && version >= 20600;
      pair.send =
          pair.receive && (settings.net_gdr_read ? *settings.net_gdr_read != 0 : nvlink || one_gpu);
      decision.pairs.push_back(pair);
    }
    ++rank;
  }
}

void decide_new(Decision& decision, const Topology& seen, const ModelLibrary& models,
                const Settings& settings) {
  const View view = nccl::view(seen, 0, &models, settings);
  const Rules rules = rules_of(settings.version);
  const PathType level = gdr_level(rules, settings);
  for (std::size_t g = 0; g < view.gpus.size(); ++g) {
    decision.gpus.push_back(view.gpus[g].device);
    auto& nics = decision.nics_of_gpu.emplace_back();
    for (const std::size_t net : view.local_nets[g])
      if (std::find(nics.begin(), nics.end(), view.nets[net].device) == nics.end())
        nics.push_back(view.nets[net].device);
    for (std::size_t n = 0; n < view.nets.size(); ++n) {
      const GpuNet& own = view.gpu_nets[g][n];
      PairDecision pair;
      pair.gpu = view.gpus[g].device;
      pair.nic = view.nets[n].device;
      pair.rank = view.gpus[g].rank;
      pair.gpu_dev = view.gpus[g].dev;
      pair.net = view.nets[n].dev;
      pair.wired = own.own_path.type;
      pair.distance = own.relay != g && own.relay < view.gpus.size()
                          ? view.gpu_nets[own.relay][n].own_path.type
                          : own.own_path.type;
      if (own.relay != g && own.relay < view.gpus.size()) pair.relay = view.gpus[own.relay].device;
      pair.level = level;
      pair.receive = own.gdr_write;
      pair.send = own.gdr_read;
      decision.pairs.push_back(pair);
    }
  }
}

/// Stated distances have no tree for NCCL to search: apply the rules to them directly.
bool only_stated(const Host& host) {
  return std::any_of(host.devices.begin(), host.devices.end(),
                     [](const Device& device) { return device.place_known == false; });
}

}  // namespace

Environment parse_environment(std::string_view text, const std::string& name) {
  Environment environment;
  std::size_t number = 0;
  for (std::string_view line : text::lines(text)) {
    ++number;
    line = text::trim(line);
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("export ")) line = text::trim(line.substr(7));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw InputError(fmt::format("{}:{}: NAME=VALUE is expected", name, number));
    std::string_view value = text::trim(line.substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    environment[std::string(text::trim(line.substr(0, equals)))] = std::string(value);
  }
  return environment;
}

bool hca_selected(std::string_view spec, std::string_view rdma_device, int port) {
  const bool but = spec.starts_with('^');
  if (but) spec.remove_prefix(1);
  const bool exact = spec.starts_with('=');
  if (exact) spec.remove_prefix(1);
  bool found = false;
  while (!spec.empty()) {
    const auto end = std::min(spec.find(','), spec.size());
    std::string_view item = spec.substr(0, end);
    spec.remove_prefix(std::min(end + 1, spec.size()));
    const auto colon = item.find(':');
    const auto wanted =
        colon == std::string_view::npos ? std::nullopt : text::whole_int(item.substr(colon + 1));
    item = item.substr(0, colon);
    if (item.empty()) continue;
    const bool name = exact ? rdma_device == item : rdma_device.starts_with(item);
    found = found || (name && (!wanted || *wanted == port));
  }
  return but ? !found : found;
}

Decision decide(const Topology& topology, std::size_t host, const ModelLibrary& models,
                const std::string& version, const Environment& environment) {
  Decision decision;
  decision.version = version;
  const Settings settings = settings_of(version, environment, decision.notes);
  const Topology seen = seen_by_nccl(topology, host, environment, decision.notes);
  note_unknown_speeds(seen, models, version, decision.notes);
  const bool no_ib = value_of(environment, "NCCL_IB_DISABLE") == "1";
  if (!is_modelled(version) || only_stated(seen.hosts.front()))
    decide_old(decision, seen, models, settings);
  else decide_new(decision, seen, models, settings);
  const Host& devices = seen.hosts.front();
  for (PairDecision& pair : decision.pairs) {
    if (no_ib) {
      pair.receive = false;
      pair.send = false;
    }
    pair.reason = reason_of(pair, devices.devices[pair.gpu], devices.devices[pair.nic]);
    const Device& gpu = devices.devices[pair.gpu];
    const std::string bus = gpu.address.empty() ? "0000:00:00.0" : gpu.address;
    const bool named = version_number(version) < 20400;
    const std::string net = devices.devices[pair.nic].rdma_device;
    if (!no_ib && devices.devices[pair.nic].gdr != false)
      pair.log_line =
          gdr_log_line(version_number(version),
                       {bus, pair.rank, pair.gpu_dev, pair.net,
                        named && net.empty() ? devices.devices[pair.nic].name : net, pair.distance,
                        pair.number, pair.level, pair.receive, pair.send.value_or(false)});
    // Identify devices by their index in the whole topology; NCCL_IB_HCA may have removed some.
    const auto place = [&](std::size_t& device) {
      device = *device_index(topology.hosts.at(host), devices.devices[device].name);
    };
    place(pair.gpu);
    place(pair.nic);
    if (pair.relay) place(*pair.relay);
  }
  for (std::size_t& gpu : decision.gpus)
    gpu = *device_index(topology.hosts.at(host), devices.devices[gpu].name);
  for (auto& nics : decision.nics_of_gpu)
    for (std::size_t& nic : nics)
      nic = *device_index(topology.hosts.at(host), devices.devices[nic].name);
  return decision;
}

}  // namespace gdr::nccl
