#include "src/doctor/text_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/common/terminal_text.hpp"
#include "src/import/host_facts.hpp"

namespace gdr::doctor {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  std::string digits;
  for (const char c : text)
    if (c != ',') digits += c;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && end == digits.data() + digits.size() && !digits.empty()
             ? std::optional(value)
             : std::nullopt;
}

}  // namespace

void TextFacts::line(std::string_view text) {
  if (text::trim(text).empty()) return;
  if (const auto mode = observed::iommu_of_command_line(text);
      mode && text::trim(text).front() != '#')
    facts_.iommu = mode;
  if (gids(text) || flow_control(text) || counter(text) || limits(text) || settings(text) ||
      versions(text) || modules(text))
    return;
  message(text);
}

bool TextFacts::modules(std::string_view text) {
  const auto words = text::split_words(text);
  if (words.size() >= 4 && words[0] == "Module" && words[1] == "Size" && words[2] == "Used") {
    lsmod_ = true;
    if (!facts_.modules) facts_.modules.emplace();
    return true;
  }
  if (words.size() < 3 || !text::whole_int(words[1]) || !text::whole_int(words[2])) return false;
  const std::string name = text::printable(words[0], 60);
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos ||
      !std::isalpha(static_cast<unsigned char>(name.front())))
    return false;
  if (lsmod_) facts_.modules->insert(name);
  facts_.modules_seen.insert(name);
  return true;
}

/// show_gids: DEV PORT INDEX GID [IPv4] VER DEV; ibdev2netdev: mlx5_0 port 1 ==> eth0 (Up).
bool TextFacts::gids(std::string_view text) {
  const auto words = text::split_words(text);
  if (words.size() >= 5 && words[0] == "DEV" && words[1] == "PORT" && words[2] == "INDEX") {
    show_gids_ = true;
    facts_.gids_listed = true;
    return true;
  }
  if (words.size() >= 5 && words[1] == "port" && words[3] == "==>") {
    facts_.networks[text::printable(words[0], 40)] = text::printable(words[4], 40);
    facts_.rdma_devices.insert(text::printable(words[0], 40));
    facts_.networks_listed = true;
    return true;
  }
  if (has(text, "ibdev2netdev") || has(text, "show_gids")) {
    facts_.networks_listed = facts_.networks_listed || has(text, "ibdev2netdev");
    facts_.gids_listed = facts_.gids_listed || has(text, "show_gids");
    return true;
  }
  if (!show_gids_ || words.size() < 4 || words[3].find(':') == std::string_view::npos ||
      !text::whole_int(words[1]) || !text::whole_int(words[2]))
    return false;
  Gid gid;
  gid.device = text::printable(words[0], 40);
  gid.port = *text::whole_int(words[1]);
  gid.index = *text::whole_int(words[2]);
  gid.address = text::printable(words[3], 45);
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (words[i] == "v1" || words[i] == "v2") gid.type = std::string(words[i]);
    else if (gid.type.empty()) gid.address = text::printable(words[i], 45);
    else gid.network = text::printable(words[i], 40);
  }
  facts_.rdma_devices.insert(gid.device);
  facts_.gids.push_back(std::move(gid));
  return true;
}

bool TextFacts::flow_control(std::string_view text) {
  const auto words = text::split_words(text);
  if (words.size() == 9 && words[0] == "enabled") {
    FlowControl control;
    for (std::size_t i = 1; i < 9; ++i) control.enabled.push_back(words[i] == "1");
    if (!facts_.flow_control.empty() && facts_.flow_control.back().enabled.empty())
      facts_.flow_control.back().enabled = control.enabled;
    else facts_.flow_control.push_back(std::move(control));
    return true;
  }
  if (const auto trust = text::after(text, "Priority trust state:")) {
    facts_.flow_control.push_back(
        {{},
         {},
         text::printable(text::split_words(*trust).empty() ? "" : text::split_words(*trust).front(),
                         10)});
    return true;
  }
  if (const auto ecn = text::after(text, "roce_np/enable/")) {
    facts_.ecn = ecn->ends_with("1");
    return true;
  }
  return false;
}

/// "rx_prio0_bytes: 12", "out_of_sequence = 6,140,236", "local_ack_timeout_err 2705".
bool TextFacts::counter(std::string_view text) {
  static constexpr std::array<std::string_view, 10> names{
      "out_of_sequence", "local_ack_timeout_err", "packet_seq_err",    "np_ecn_marked_roce_packets",
      "rp_cnp_handled",  "np_cnp_sent",           "rnr_nak_retry_err", "rx_prio",
      "tx_prio",         "implied_nak_seq_err"};
  std::string spaced(text);
  for (char& c : spaced)
    if (c == ':' || c == '=') c = ' ';
  const auto words = text::split_words(spaced);
  bool any = false;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const bool known = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return words[i].starts_with(name);
    });
    std::string_view digits = words[i + 1];
    if (digits.ends_with(',')) digits.remove_suffix(1);
    const auto value = known ? number(digits) : std::nullopt;
    if (!value) continue;
    facts_.counters[text::printable(words[i], 60)] = *value;
    any = true;
  }
  return any;
}

bool TextFacts::limits(std::string_view text) {
  const std::string_view line = text::trim(text);
  const auto set = [&](std::string_view value, std::uint64_t divisor) {
    facts_.locked_memory_unlimited = value == "unlimited";
    if (const auto amount = number(value)) facts_.locked_memory_kib = *amount / divisor;
    return facts_.locked_memory_unlimited || facts_.locked_memory_kib;
  };
  if (asked_locked_memory_) {
    asked_locked_memory_ = false;
    if (set(line, 1)) return true;
  }
  if (line.ends_with("ulimit -l")) {
    asked_locked_memory_ = true;
    return true;
  }
  if (const auto value = text::after(line, "max locked memory")) {
    const auto words = text::split_words(*value);
    return !words.empty() && set(words.back(), 1);
  }
  if (line.starts_with("Max locked memory")) {
    const auto words = text::split_words(line);
    return words.size() >= 4 && set(words[3], 1024);
  }
  if (const auto times = text::after(line, "rtt min/avg/max/mdev = ")) {
    double first = 0;
    if (std::from_chars(times->data(), times->data() + times->size(), first).ec == std::errc{} &&
        first >= 0 && first < 1e6)
      facts_.round_trip = Duration{first * 1e-3};
    return true;
  }
  return false;
}

bool TextFacts::settings(std::string_view text) {
  std::string_view line = text::trim(text);
  for (const std::string_view start : {"export ", "-x ", "ENV ", "env "})
    if (line.starts_with(start)) line = text::trim(line.substr(start.size()));
  const auto equals = line.find('=');
  const bool name =
      equals != std::string_view::npos && (line.starts_with("NCCL_") || line.starts_with("UCX_"));
  if (name && line.substr(0, equals).find(' ') == std::string_view::npos) {
    facts_.settings[text::printable(line.substr(0, equals), 60)] =
        text::printable(text::trim(line.substr(equals + 1)), 60);
    return true;
  }
  if (const auto ordering = text::after(line, "PCI_WR_ORDERING")) {
    facts_.write_ordering = text::printable(
        text::split_words(*ordering).empty() ? "" : text::split_words(*ordering).back(), 30);
    return true;
  }
  if (text::split_words(line).size() >= 2 && text::split_words(line).front() == "NVMe" &&
      has(line, ":")) {
    const auto state = text::trim(line.substr(line.find(':') + 1));
    if (state == "Supported" || state == "Unsupported") {
      facts_.gds_nvme = std::string(state);
      return true;
    }
  }
  return false;
}

bool TextFacts::versions(std::string_view text) {
  const std::string_view line = text::trim(text);
  if (line.starts_with("MLNX_OFED_LINUX-")) {
    facts_.ofed = text::printable(line.substr(0, line.find(':')), 60);
    return true;
  }
  if (line.starts_with("GPU ") && has(line, ": ") && has(line, "UUID")) {  // nvidia-smi -L
    const auto name = line.substr(line.find(": ") + 2);
    facts_.gpu_name = text::printable(name.substr(0, name.find(" (")), 60);
    return true;
  }
  if (line.ends_with(" ib_register_peer_memory_client") ||
      has(line, " ib_register_peer_memory_client\t")) {
    const auto words = text::split_words(line);
    if (words.size() >= 3 && words[1].size() == 1) {
      facts_.peer_client_symbol = true;
      return true;
    }
  }
  if (has(line, "memory_peers/nv_mem")) {
    facts_.memory_peers = !(has(line, "No such file") || has(line, "cannot access"));
    return true;
  }
  const auto words = text::split_words(line);
  if (words.size() >= 4 && (words[2] == "ext4" || words[2] == "xfs")) {  // /proc/mounts
    facts_.mounts.emplace_back(text::printable(words[1], 80),
                               std::string(words[2]) + "," + text::printable(words[3], 200));
    return true;
  }
  if (line.starts_with("link_layer:")) {
    facts_.layers["*"] = text::printable(text::trim(line.substr(11)), 20);
    return true;
  }
  return false;
}

void TextFacts::message(std::string_view text) {
  static constexpr std::array<std::string_view, 16> words{"ib_register_peer_memory_client",
                                                          "IO_PAGE_FAULT",
                                                          "DMAR:",
                                                          "rdma_rxe",
                                                          "ibv_reg",
                                                          "ibv_modify_qp",
                                                          "does not support the kernel ABI",
                                                          "does not support kernel ABI",
                                                          "EPROTONOSUPPORT",
                                                          "retry count exceeded",
                                                          "RNR",
                                                          "rnr_retry",
                                                          "ncclIbRoceGetVersionNum",
                                                          "soft lockup",
                                                          "vendor err",
                                                          "nvidia_p2p_get_pages"};
  for (const std::string_view word : words)
    if (has(text, word)) {
      if (facts_.messages.size() < 200)
        facts_.messages.push_back(text::printable(text::trim(text), 240));
      return;
    }
  if ((has(text, "docker") || has(text, "kubepods")) && has(text, "cgroup"))
    facts_.container = true;
}

}  // namespace gdr::doctor
