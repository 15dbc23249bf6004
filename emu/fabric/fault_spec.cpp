#include "emu/fabric/fault_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "src/common/error.hpp"

namespace gdr::fabric {
namespace {

/// The place of an error: "faults: at item 2 (h1/nic3), loss".
using Place = std::string;

[[noreturn]] void fail(const Place& place, std::string_view found, std::string_view allowed) {
  throw InputError(fmt::format("{}: found {}, allowed {}", place, found, allowed));
}

std::string quoted(std::string_view text) {
  return text.empty() ? "nothing" : fmt::format("\"{}\"", printable(text));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Probability parse_probability(const Place& place, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool has_unit = trim(unit) == "%" || (number == 0 && unit.empty());
  if (error != std::errc{} || !has_unit || !std::isfinite(number) || number < 0 || number > 100)
    fail(place, quoted(text), "a share of the frames from 0% to 100%");
  return {number / 100};
}

std::uint64_t parse_count(const Place& place, std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    fail(place, quoted(text), "a number of frames, 0 to 18446744073709551615");
  return number;
}

template <typename Parse>
auto with_place(const Place& place, std::string_view text, Parse parse) {
  try {
    return parse(text);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", place, error.what()));
  }
}

Duration parse_time(const Place& place, std::string_view text) {
  return with_place(place, text, parse_duration);
}

struct Key {
  std::string_view name;
  void (*set)(const Place&, std::string_view, LinkOptions&);
};

constexpr std::array<Key, 16> keys{{
    {"rate",
     [](const Place& at, std::string_view text, LinkOptions& link) {
       const Bandwidth rate = with_place(at, text, parse_bandwidth);
       if (rate.bytes_per_second < 1) fail(at, quoted(text), "at least 1B/s");
       link.rate = rate;
     }},
    {"queue", [](const Place& at, std::string_view text,
                 LinkOptions& link) { link.queue = with_place(at, text, parse_bytes); }},
    {"delay", [](const Place& at, std::string_view text,
                 LinkOptions& link) { link.delay = parse_time(at, text); }},
    {"loss", [](const Place& at, std::string_view text,
                LinkOptions& link) { link.loss = parse_probability(at, text); }},
    {"duplicate", [](const Place& at, std::string_view text,
                     LinkOptions& link) { link.duplicate = parse_probability(at, text); }},
    {"reorder", [](const Place& at, std::string_view text,
                   LinkOptions& link) { link.reorder = parse_probability(at, text); }},
    {"reorder-by", [](const Place& at, std::string_view text,
                      LinkOptions& link) { link.reorder_by = parse_time(at, text); }},
    {"corrupt", [](const Place& at, std::string_view text,
                   LinkOptions& link) { link.corrupt = parse_probability(at, text); }},
    {"mark", [](const Place& at, std::string_view text,
                LinkOptions& link) { link.mark = parse_probability(at, text); }},
    {"pause-at", [](const Place& at, std::string_view text,
                    LinkOptions& link) { link.pause_at = parse_time(at, text); }},
    {"pause-for", [](const Place& at, std::string_view text,
                     LinkOptions& link) { link.pause_for = parse_time(at, text); }},
    {"down-at", [](const Place& at, std::string_view text,
                   LinkOptions& link) { link.down_at = parse_time(at, text); }},
    {"down-after", [](const Place& at, std::string_view text,
                      LinkOptions& link) { link.down_after = parse_count(at, text); }},
    {"down-for", [](const Place& at, std::string_view text,
                    LinkOptions& link) { link.down_for = parse_time(at, text); }},
    {"down-frames", [](const Place& at, std::string_view text,
                       LinkOptions& link) { link.down_frames = parse_count(at, text); }},
    {"only",
     [](const Place& at, std::string_view text, LinkOptions& link) {
       if (text != "roce" && text != "all") fail(at, quoted(text), "roce, all");
       link.roce_only = text == "roce";
     }},
}};

void set(const Place& place, std::string_view assignment, LinkOptions& link) {
  const auto equals = assignment.find('=');
  const std::string_view name = trim(assignment.substr(0, equals));
  for (const Key& key : keys) {
    if (key.name != name) continue;
    if (equals == std::string_view::npos)
      fail(place, fmt::format("\"{}\" without a value", name), fmt::format("{}=VALUE", name));
    key.set(fmt::format("{}, {}", place, name), trim(assignment.substr(equals + 1)), link);
    return;
  }
  std::array<std::string_view, keys.size()> names;
  std::transform(keys.begin(), keys.end(), names.begin(), [](const Key& key) { return key.name; });
  fail(place, quoted(name), fmt::format("{}", fmt::join(names, ", ")));
}

/// Parses the part before the colon.
struct Where {
  std::string_view port;
  bool tx = true;
  bool rx = true;
};

Where parse_where(std::string_view text) {
  if (text.ends_with(".tx")) return {text.substr(0, text.size() - 3), true, false};
  if (text.ends_with(".rx")) return {text.substr(0, text.size() - 3), false, true};
  return {text, true, true};
}

/// True for "*", the same name, or the name with "*" for the host, the NIC or both.
bool matches(std::string_view pattern, std::string_view name) {
  if (pattern == "*" || pattern == name) return true;
  const auto slash = pattern.find('/');
  const auto name_slash = name.find('/');
  if (slash == std::string_view::npos || name_slash == std::string_view::npos) return false;
  const auto part = [](std::string_view wanted, std::string_view found) {
    return wanted == "*" || wanted == found;
  };
  return part(pattern.substr(0, slash), name.substr(0, name_slash)) &&
         part(pattern.substr(slash + 1), name.substr(name_slash + 1));
}

void apply_item(const Place& number, std::string_view item, std::vector<PortOptions>& ports) {
  const auto colon = item.find(':');
  if (colon == std::string_view::npos) fail(number, quoted(item), "PORT:KEY=VALUE,...");
  const std::string_view head = trim(item.substr(0, colon));
  const Where where = parse_where(head);
  bool found = false;
  for (PortOptions& port : ports) {
    if (!matches(where.port, port.name)) continue;
    found = true;
    const Place place = fmt::format("{} ({})", number, printable(head));
    for (const std::string_view assignment : split(item.substr(colon + 1), ',')) {
      if (where.tx) set(place, assignment, port.tx);
      if (where.rx) set(place, assignment, port.rx);
    }
  }
  if (found) return;
  std::vector<std::string_view> names;
  for (const PortOptions& port : ports)
    if (names.size() < 16) names.push_back(port.name);
  fail(number, quoted(head),
       fmt::format("{}{}; * for a host or a NIC; add .tx or .rx for one direction",
                   fmt::join(names, ", "), names.size() < ports.size() ? " and so on" : ""));
}

/// Checks that concern several options of a link.
void check_link(const PortOptions& port, std::string_view direction, const LinkOptions& link) {
  const Place place = fmt::format("faults: {}.{}", printable(port.name), direction);
  if (link.queue && !link.rate && !link.pause_at)
    fail(place, "queue without rate", "queue together with rate or pause-at");
  if (link.pause_at.has_value() != (link.pause_for > Duration{}))
    fail(place, link.pause_at ? "pause-at without pause-for" : "pause-for without pause-at",
         "both together");
  if (!link.down_at && !link.down_after && (link.down_for || link.down_frames))
    fail(place, link.down_for ? "down-for" : "down-frames",
         "down-for or down-frames together with down-at or down-after");
  if (link.reorder > Probability{} && link.reorder_by == Duration{})
    fail(place, "reorder-by=0", "more than 0 with reorder");
}

}  // namespace

void apply_faults(std::string_view spec, std::vector<PortOptions>& ports) {
  std::vector<PortOptions> changed = ports;
  const auto items = split(spec, ';');
  for (std::size_t i = 0; i < items.size(); ++i)
    apply_item(fmt::format("faults: at item {}", i + 1), items[i], changed);
  for (const PortOptions& port : changed) {
    check_link(port, "tx", port.tx);
    check_link(port, "rx", port.rx);
  }
  ports = std::move(changed);
}

}  // namespace gdr::fabric
