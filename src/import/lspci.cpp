#include "src/import/lspci.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "src/common/terminal_text.hpp"
#include "src/import/config_space.hpp"
#include "src/import/pci_names.hpp"

namespace gdr::observed {
namespace {

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool all_hex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_hex);
}

/// Takes "[10de:2330]" from the end of a text, after removing "(rev a1)" and the like.
std::string take_id(std::string_view& text) {
  if (!text.ends_with(']') || text.size() < 11) return {};
  const std::string_view id = text.substr(text.size() - 10, 9);
  if (text[text.size() - 11] != '[' || id[4] != ':' || !all_hex(id.substr(0, 4)) ||
      !all_hex(id.substr(5)))
    return {};
  text = text::trim(text.substr(0, text.size() - 11));
  return std::string(id);
}

std::string_view without_parentheses(std::string_view text) {
  for (;;) {
    text = text::trim(text);
    const auto open = text.rfind(" (");
    if (!text.ends_with(')') || open == std::string_view::npos) return text;
    const std::string_view inside = text.substr(open + 2);
    if (!inside.starts_with("rev ") && !inside.starts_with("prog-if ")) return text;
    text = text.substr(0, open);
  }
}

}  // namespace

std::optional<Acs> parse_acs_line(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::uint16_t>, 7> words{
      {{"SrcValid", Acs::source_validation},
       {"TransBlk", Acs::translation_blocking},
       {"ReqRedir", Acs::request_redirect},
       {"CmpltRedir", Acs::completion_redirect},
       {"UpstreamFwd", Acs::upstream_forwarding},
       {"EgressCtrl", Acs::egress_control},
       {"DirectTrans", Acs::direct_translated}}};
  const auto rest = text::after(text, "ACSCtl:");
  if (!rest) return std::nullopt;
  Acs acs;
  bool any = false;
  for (const std::string_view word : text::split_words(*rest))
    for (const auto& [name, bit] : words)
      if (word.size() == name.size() + 1 && word.starts_with(name)) {
        any = true;
        if (word.back() == '+') acs.bits |= bit;
      }
  return any ? std::optional(acs) : std::nullopt;
}

std::optional<Bytes> parse_lspci_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{} || number == 0 || number > 1U << 20U || unit.size() > 1)
    return std::nullopt;
  constexpr std::string_view units = "KMGT";
  const auto at = unit.empty() ? std::string_view::npos : units.find(unit.front());
  if (!unit.empty() && at == std::string_view::npos) return std::nullopt;
  return Bytes{unit.empty() ? number : number << (10 * (at + 1))};
}

std::optional<PcieLink> parse_lspci_link(std::string_view text) {
  const auto speed = text::after(text, "Speed ");
  const auto width = text::int_after(text, "Width x");
  if (!speed || !width) return std::nullopt;
  double rate = 0;
  const auto [end, error] = std::from_chars(speed->data(), speed->data() + speed->size(), rate);
  constexpr std::array<int, 7> widths{1, 2, 4, 8, 12, 16, 32};
  if (error != std::errc{} || std::find(widths.begin(), widths.end(), *width) == widths.end())
    return std::nullopt;
  for (int generation = 1; generation <= 6; ++generation)
    if (gigatransfers_per_lane(generation) == rate) return PcieLink{generation, *width};
  return std::nullopt;
}

void read_lspci_description(std::string_view text, bool with_class, Function& function) {
  text = without_parentheses(text);
  if (with_class) {
    const auto colon = text.find(": ");
    std::string_view words = text.substr(0, colon);
    text =
        colon == std::string_view::npos ? std::string_view() : text::trim(text.substr(colon + 2));
    std::string_view digits = words;
    if (const auto open = words.rfind(" [");
        words.ends_with(']') && open != std::string_view::npos) {
      digits = words.substr(open + 2, words.size() - open - 3);
      words = words.substr(0, open);
    }
    const auto number =
        digits.size() == 4 && all_hex(digits) ? text::whole_int(digits, 16) : std::nullopt;
    function.pci_class =
        number ? std::optional(static_cast<unsigned>(*number) << 8U) : class_of_name(words);
    if (text.size() == 9 && text[4] == ':' && all_hex(text.substr(0, 4)) &&
        all_hex(text.substr(5))) {  // lspci -n
      function.pci_id = std::string(text);
      return;
    }
  }
  if (std::string id = take_id(text); !id.empty()) function.pci_id = std::move(id);
  function.text = text::printable(text);
  if (function.pci_id.empty()) function.pci_id = id_of_name(function.text);
}

bool LspciReader::line(std::string_view text) {
  if (text::trim(text).empty()) {
    finish_function();
    tree_.reset();
    return false;
  }
  if (tree_.line(text, machine_)) {
    finish_function();
    machine_.formats = {"lspci -t"};
    return true;
  }
  if (header(text) || hex(text) || property(text)) return true;
  finish_function();
  return false;
}

Function& LspciReader::at_path(std::string_view path) {
  std::optional<std::size_t> above;
  std::string walked;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const std::string_view step = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    walked += "/" + std::string(step);
    const std::string address = full_address(step);
    const auto [at, is_new] =
        by_path_.try_emplace(address.empty() ? walked : address, machine_.functions.size());
    if (is_new) {
      machine_.functions.emplace_back().address = address;
      if (above) machine_.functions.back().above = above;
      else if (end < walked.size() || !path.empty())
        machine_.functions.back().root_bus = path.empty() ? std::string() : bus_text(address);
    }
    above = at->second;
  }
  current_ = above;
  return machine_.functions[*above];
}

bool LspciReader::header(std::string_view text) {
  if (text.empty() || !is_hex(text.front())) return false;
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos) return false;
  const std::string_view path = text.substr(0, blank);
  if (full_address(path.substr(0, path.find('/'))).empty()) return false;
  for (const char c : path)
    if (!is_hex(c) && c != ':' && c != '.' && c != '/') return false;
  const std::string_view words = text::trim(text.substr(blank));
  if (words.find(": ") == std::string_view::npos) return false;
  finish_function();
  Function& function = at_path(path);
  read_lspci_description(words, true, function);
  listed_ = true;
  return true;
}

bool LspciReader::hex(std::string_view text) {
  if (!current_) return false;
  const auto colon = text.find(": ");
  if (colon == std::string_view::npos || colon < 2 || colon > 3) return false;
  const auto offset = text::whole_int(text.substr(0, colon), 16);
  const auto bytes = parse_hex(text.substr(colon + 2));
  if (!offset || bytes.empty() || bytes.size() > 16 ||
      static_cast<std::size_t>(*offset) != bytes_.size())
    return false;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return true;
}

void LspciReader::memory(std::string_view text) {
  Function& function = machine_.functions[*current_];
  if (text.find("Memory at ") == std::string_view::npos ||
      text.find("prefetchable") == std::string_view::npos)
    return;
  if (text.find("non-prefetchable") != std::string_view::npos) return;
  Bar bar;
  bar.region =
      text::int_after(text, "Region ").value_or(static_cast<int>(function.bars.size()) + 1);
  bar.assigned = text.find("<ignored>") == std::string_view::npos &&
                 text.find("<unassigned>") == std::string_view::npos;
  if (const auto size = text::after(text, "[size="))
    bar.size = parse_lspci_size(size->substr(0, size->find(']')));
  function.bars.push_back(bar);
}

void LspciReader::express(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, PortType>, 6> types{
      {{" Root Port", PortType::root},
       {" Upstream Port", PortType::upstream},
       {" Downstream Port", PortType::downstream},
       {" Legacy Endpoint", PortType::legacy_endpoint},
       {" Root Complex Integrated Endpoint", PortType::integrated},
       {" Endpoint", PortType::endpoint}}};
  for (const auto& [words, type] : types)
    if (text.find(words) != std::string_view::npos) {
      machine_.functions[*current_].port_type = type;
      return;
    }
}

bool LspciReader::property(std::string_view text) {
  const std::string_view inside = text::trim(text);
  if (const auto acs = parse_acs_line(inside); acs && !current_) {
    auto& loose = machine_.loose_acs;
    const auto same = std::find_if(loose.begin(), loose.end(),
                                   [&](const LooseAcs& one) { return one.bits == *acs; });
    if (same == loose.end()) loose.push_back({*acs, 1, {}});
    else ++same->count;
    if (machine_.formats.empty()) machine_.formats = {"ACSCtl lines of lspci"};
    return true;
  }
  const bool indented = text.starts_with(' ') || text.starts_with('\t');
  if (!current_ || !indented) return false;
  Function& function = machine_.functions[*current_];
  if (const auto acs = parse_acs_line(inside)) function.acs = acs;
  if (inside.find("access denied") != std::string_view::npos) function.hidden = true;
  if (inside.starts_with("NUMA node:")) function.numa_node = text::int_after(inside, "NUMA node:");
  if (inside.starts_with("IOMMU group:"))
    function.iommu_group = text::int_after(inside, "IOMMU group:");
  if (inside.starts_with("Bus:")) {
    function.secondary = text::int_after(inside, "secondary=", 16);
    function.subordinate = text::int_after(inside, "subordinate=", 16);
  }
  if (inside.find("Memory at ") != std::string_view::npos) memory(inside);
  if (inside.find("] Express ") != std::string_view::npos) express(inside);
  if (inside.starts_with("LnkCap:")) function.link_capability = parse_lspci_link(inside);
  if (inside.starts_with("LnkSta:")) function.link = parse_lspci_link(inside);
  if (inside.find("RlxdOrd") != std::string_view::npos)
    function.relaxed_ordering = inside.find("RlxdOrd+") != std::string_view::npos;
  const auto size_of = [&](std::string_view key) -> std::optional<Bytes> {
    const auto bytes = text::int_after(inside, key);
    const bool good = bytes && *bytes >= 128 && *bytes <= 4096 && (*bytes & (*bytes - 1)) == 0;
    return good ? std::optional(Bytes{static_cast<std::uint64_t>(*bytes)}) : std::nullopt;
  };
  if (const auto request = size_of("MaxReadReq ")) {
    function.max_read_request = request;
    function.max_payload = size_of("MaxPayload ");
  }
  if (inside.starts_with("ATSCtl:"))
    function.ats = inside.find("Enable+") != std::string_view::npos;
  if (const auto driver = text::after(inside, "Kernel driver in use:"))
    function.driver = text::printable(*driver, 40);
  verbose_ = true;
  return true;
}

void LspciReader::finish_function() {
  if (current_ && bytes_.size() >= 64) read_config_space(bytes_, machine_.functions[*current_]);
  bytes_.clear();
  current_.reset();
}

Machine LspciReader::take() {
  finish_function();
  if (listed_) machine_.formats.push_back(verbose_ ? "lspci -v" : "lspci");
  for (const Function& function : machine_.functions)
    if (is_virtual_name(function.text)) machine_.virtual_machine = true;
  Machine machine;
  merge(machine, machine_);  // merges functions that several commands listed
  *this = LspciReader();
  return machine;
}

}  // namespace gdr::observed
