#include "emu/machine/refusals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "emu/machine/addresses.hpp"
#include "src/common/error.hpp"
#include "src/verdict/host_verdict.hpp"

namespace gdr::emu {
namespace {

/// Rules that software inside the guest remedies.
const std::set<std::string> software_rules_of_guest{"peermem-missing", "kernel-too-old",
                                                    "cuda-too-old"};

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw InputError(
      fmt::format("--refuse-registration {}: {}; write HOST/gpuN-nicM, with * for any, then "
                  "perhaps ,after=COUNT and ,above=SIZE",
                  text, what));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "gpu0" or "gpu*" of some host among `hosts`.
void check_device(const std::string& text, std::string_view device, std::string_view word,
                  DeviceKind kind, const std::vector<const Host*>& hosts) {
  if (!device.starts_with(word))
    refuse(text, fmt::format("\"{}\" does not begin with {}", printable(device, 40), word));
  const std::string_view number = device.substr(word.size());
  if (number == "*") return;
  if (!is_number(number)) refuse(text, fmt::format("\"{}\" has no number", printable(device, 40)));
  std::size_t value = 0;
  std::from_chars(number.data(), number.data() + number.size(), value);
  const bool there = std::any_of(hosts.begin(), hosts.end(), [&](const Host* host) {
    const auto numbered = numbered_devices(*host, kind);
    return std::any_of(numbered.begin(), numbered.end(),
                       [&](const Numbered& n) { return n.number == value; });
  });
  if (!there) refuse(text, fmt::format("there is no {}", device));
}

std::string option(const std::string& text, std::string_view given) {
  const auto equals = given.find('=');
  const std::string_view key = given.substr(0, equals);
  const std::string value(equals == std::string_view::npos ? "" : given.substr(equals + 1));
  if (key == "above") return fmt::format(",above={}", parse_bytes(value).count);
  if (key != "after") refuse(text, fmt::format("\"{}\" is not known", printable(key, 40)));
  if (value.size() > 9 || value.empty() ||
      value.find_first_not_of("0123456789") != std::string::npos)
    refuse(text, fmt::format("after={} is no count", printable(value, 40)));
  return ",after=" + value;
}

}  // namespace

std::string refused_pairs(const Topology& topology, std::size_t index, const ModelLibrary& models) {
  Topology alone = topology;
  alone.hosts = {topology.hosts.at(index)};
  const Host& host = alone.hosts.front();
  const auto gpus = numbered_devices(host, DeviceKind::gpu);
  const auto nics = numbered_devices(host, DeviceKind::nic);
  if (gpus.empty() || nics.empty()) return "";
  const auto number = [](const std::vector<Numbered>& devices, std::size_t device) {
    return std::find_if(devices.begin(), devices.end(),
                        [&](const Numbered& n) { return n.device == device; })
        ->number;
  };
  std::string text;
  const Graph graph(alone);
  const Hardware hardware(graph, models);
  for (const JudgedPair& pair : judge_host(hardware).pairs) {
    if (pair.context.kind != PairKind::gpu_nic || pair.answer != PairAnswer::blocked) continue;
    const auto blocking =
        std::find_if(pair.notes.begin(), pair.notes.end(), [](const RuleNote& note) {
          return note.effect == Effect::blocks && software_rules_of_guest.count(note.rule) == 0;
        });
    if (blocking == pair.notes.end()) continue;
    text += fmt::format("#refuse gpu{}-nic{} {}\n", number(gpus, pair.context.target.device),
                        number(nics, pair.context.initiator.device), blocking->rule);
  }
  return text;
}

Refusal parse_refusal(const std::string& text, const Topology& topology) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) refuse(text, "no host");
  Refusal refusal;
  if (const std::string host = text.substr(0, slash); host != "*") refusal.host = host;
  std::vector<const Host*> hosts;
  for (const Host& host : topology.hosts)
    if (refusal.host.empty() || host.name == refusal.host) hosts.push_back(&host);
  if (hosts.empty()) refuse(text, fmt::format("there is no host {}", printable(refusal.host, 40)));

  std::string_view rest = std::string_view(text).substr(slash + 1);
  const std::string_view pair = rest.substr(0, rest.find(','));
  const auto dash = pair.find('-');
  if (dash == std::string_view::npos) refuse(text, "no pair");
  check_device(text, pair.substr(0, dash), "gpu", DeviceKind::gpu, hosts);
  check_device(text, pair.substr(dash + 1), "nic", DeviceKind::nic, hosts);
  refusal.rule = pair;
  for (rest.remove_prefix(pair.size()); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view given = rest.substr(0, rest.find(','));
    refusal.rule += option(text, given);
    rest.remove_prefix(given.size());
  }
  return refusal;
}

std::string gpu_settings(const Hardware& hardware, std::size_t host,
                         const std::vector<std::size_t>& places) {
  std::string text;
  for (const Numbered& gpu :
       numbered_devices(hardware.topology().hosts.at(host), DeviceKind::gpu)) {
    const DeviceId id{host, gpu.device};
    const bool peermem = !hardware.is_amd_gpu(id);
    text += fmt::format("#gpu {} {} {} {}\n", gpu.number, places.at(gpu.device),
                        hardware.bar_window(id).count, peermem ? 1 : 0);
  }
  return text;
}

std::string nic_settings(const Hardware& hardware, std::size_t host) {
  struct Code {
    unsigned code;
    double value;
  };
  // Speeds are Gb/s per lane: SDR, DDR, QDR, FDR, EDR, HDR, NDR. The usual width comes first, since
  // the first of equal rates is taken.
  static constexpr std::array<Code, 7> speeds{
      {{1, 2.5}, {2, 5}, {4, 10}, {16, 14}, {32, 25}, {64, 50}, {128, 100}}};
  static constexpr std::array<Code, 4> widths{{{2, 4}, {1, 1}, {16, 2}, {4, 8}}};
  std::string text;
  for (const Numbered& nic :
       numbered_devices(hardware.topology().hosts.at(host), DeviceKind::nic)) {
    const double wanted = hardware.port_rate({host, nic.device}).value.bytes_per_second * 8e-9;
    std::pair<unsigned, unsigned> best;
    double off = std::numeric_limits<double>::infinity();
    for (const Code& width : widths)
      for (const Code& speed : speeds)
        if (const double away = std::abs(width.value * speed.value - wanted); away < off) {
          off = away;
          best = {speed.code, width.code};
        }
    text += fmt::format("#nic {} {} {}\n", nic.number, best.first, best.second);
  }
  return text;
}

bool has_peermem(const Host& host) { return host.software.nvidia_peermem != false; }

}  // namespace gdr::emu
