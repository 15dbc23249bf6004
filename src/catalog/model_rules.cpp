#include "src/catalog/model_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace gdr {
namespace {

struct Words {
  std::string_view parameter;
  std::vector<std::string_view> allowed;
};

const std::array<Words, 4> word_parameters{
    {{"p2p_forwarding", {"all", "host-bridge"}},
     {"link_layers", {"infiniband", "ethernet", "infiniband,ethernet"}},
     {"rdma", {"verbs", "srd", "none"}},
     {"link_layer", {"infiniband", "ethernet"}}}};

// Code divides by these, or a component without any would be none.
constexpr std::array<std::string_view, 10> positive_counts{
    "memory_channels", "cores",      "ports",      "copy_engines",
    "read_iops",       "write_iops", "generation", "transfer_rate_mtps",
    "code_payload",    "code_line"};

template <typename List>
bool contains(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string allowed_instead(std::string_view parameter, Bytes value) {
  if (parameter == "max_payload" || parameter == "max_read_request") {
    const bool power = value.count != 0 && (value.count & (value.count - 1)) == 0;
    return power && value.count >= 128 && value.count <= 4096 ? ""
                                                              : "a power of two from 128B to 4KiB";
  }
  // A NIC without inline sends exists, and FLITs have no framing of their own; any other size of 0
  // is no component.
  return value.count == 0 && parameter != "inline_threshold" && parameter != "tlp_framing"
             ? "more than 0"
             : "";
}

std::string allowed_instead(std::string_view /*parameter*/, Bandwidth value) {
  return value.bytes_per_second == 0 ? "more than 0" : "";
}

std::string allowed_instead(std::string_view /*parameter*/, Duration /*value*/) { return {}; }

std::string allowed_instead(std::string_view parameter, std::int64_t value) {
  if (parameter.ends_with("_percent") && (value < 1 || value > 100))
    return "an integer from 1 to 100";
  return value == 0 && contains(positive_counts, parameter) ? "more than 0" : "";
}

std::string allowed_instead(std::string_view /*parameter*/, bool /*value*/) { return {}; }

std::string allowed_instead(std::string_view parameter, const std::string& value) {
  for (const Words& words : word_parameters)
    if (words.parameter == parameter)
      return contains(words.allowed, value) ? ""
                                            : fmt::format("{}", fmt::join(words.allowed, ", "));
  if (parameter == "memory_transfer_rate") {
    const auto dash = value.find('-');
    const bool good = dash != std::string::npos &&
                      value.substr(0, dash).find("DDR") != std::string::npos &&
                      is_digits(value.substr(dash + 1));
    return good ? "" : "a speed grade such as DDR4-3200 or LPDDR5X-8533";
  }
  return value.empty() ? "a text" : "";
}

std::string missing_in(const CpuModel& model) {
  if (model.socket_links.value > 0 && (!model.socket_link_bandwidth || !model.socket_link_latency))
    return "\"socket_links\" is not 0, so \"socket_link_bandwidth\" and \"socket_link_latency\" "
           "are required";
  if (model.relaxed_ordering_needed.value && !model.strict_order_write_bandwidth)
    return "\"relaxed_ordering_needed\" is true, so \"strict_order_write_bandwidth\" is required";
  return {};
}

bool is_pci_id(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 9 || text[4] != ':') return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i != 4 && !hex(text[i])) return false;
  return true;
}

}  // namespace gdr
