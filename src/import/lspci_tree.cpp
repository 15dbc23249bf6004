#include "src/import/lspci_tree.hpp"

#include <fmt/format.h>

#include "src/common/terminal_text.hpp"
#include "src/import/lspci.hpp"

namespace gdr::observed {
namespace {

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/// True if "00.0" or the like is at this position of a line.
bool is_slot(std::string_view text) {
  return text.size() >= 4 && is_hex(text[0]) && is_hex(text[1]) && text[2] == '.' &&
         text[3] >= '0' && text[3] <= '7' && (text.size() == 4 || text[4] == ' ' || text[4] == '-');
}

/// Parses "ca-cf", "cb" or "0000:c0", the text in the brackets.
struct Buses {
  std::string domain;
  int first = 0;
  int last = 0;
};

std::optional<Buses> parse_buses(std::string_view text) {
  Buses buses;
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    buses.domain = std::string(text.substr(0, colon));
    text.remove_prefix(colon + 1);
    if (buses.domain.size() < 4 || buses.domain.size() > 8) return std::nullopt;
    for (const char c : buses.domain)
      if (!is_hex(c)) return std::nullopt;
  }
  const auto dash = text.find('-');
  const auto first = text::whole_int(text.substr(0, dash), 16);
  const auto last =
      dash == std::string_view::npos ? first : text::whole_int(text.substr(dash + 1), 16);
  if (!first || !last || *first < 0 || *last < *first || *last > 255) return std::nullopt;
  buses.first = *first;
  buses.last = *last;
  return buses;
}

}  // namespace

LspciTree::Parent LspciTree::branch_at(std::size_t column, bool last) {
  auto found = branches_.find(column);
  // Retyped text is sometimes off by one column.
  for (const std::size_t near : {column + 1, column - 1, column + 2, column - 2})
    if (found == branches_.end() || found->second.closed)
      if (const auto other = branches_.find(near);
          other != branches_.end() && !other->second.closed)
        found = other;
  if (found == branches_.end() || found->second.closed) {
    branches_.erase(branches_.lower_bound(column), branches_.end());
    return {};
  }
  found->second.closed = last;
  Parent parent = found->second.parent;
  branches_.erase(std::next(found), branches_.end());
  return parent;
}

/// Reads a root bus, or the buses below the preceding function.
bool LspciTree::bus(Cursor& cursor, Machine& machine) {
  const std::string_view rest = cursor.text.substr(cursor.at);
  const auto end = rest.find(']');
  if (end == std::string_view::npos) return false;
  const auto buses = parse_buses(rest.substr(1, end - 1));
  if (!buses) return false;
  cursor.at += end + 1;
  if (!cursor.function) {
    cursor.parent = {
        std::nullopt,
        fmt::format("{}:{:02x}", buses->domain.empty() ? "0000" : buses->domain, buses->first)};
    return true;
  }
  Function& bridge = machine.functions[*cursor.function];
  // A bridge cannot lead to a bus below its own number: the line of the true parent is missing.
  if (const auto own = bus_of(bridge.address); own && buses->first <= *own) {
    bridge.address.clear();
    bridge.root_bus.clear();
    bridge.above.reset();
  }
  bridge.secondary = buses->first;
  bridge.subordinate = buses->last;
  cursor.parent = {cursor.function, {}};
  cursor.function.reset();
  return true;
}

bool LspciTree::function(Cursor& cursor, Machine& machine) {
  Function function;
  const std::string slot(cursor.text.substr(cursor.at, 4));
  if (cursor.parent.bridge) {
    const Function& bridge = machine.functions[*cursor.parent.bridge];
    const std::string domain =
        bridge.address.empty() ? "0000" : bridge.address.substr(0, bridge.address.size() - 8);
    function.address = fmt::format("{}:{:02x}:{}", domain, bridge.secondary.value_or(0), slot);
    function.above = cursor.parent.bridge;
  } else if (!cursor.parent.root_bus.empty()) {
    function.address = cursor.parent.root_bus + ":" + slot;
    function.root_bus = cursor.parent.root_bus;
  }
  cursor.at += 4;
  cursor.function = machine.functions.size();
  machine.functions.push_back(std::move(function));
  return true;
}

bool LspciTree::line(std::string_view text, Machine& machine) {
  Cursor cursor{text, std::min(text.find_first_not_of(" |"), text.size()), {}, {}};
  const std::string_view start = text.substr(cursor.at);
  const bool branch = start.starts_with("+-") || start.starts_with("\\-");
  const bool root = cursor.at <= 1 && (start.starts_with("-[") || start.starts_with("-+-["));
  if (!branch && !root) return false;
  if (branch) {
    const char sign = start.front();
    cursor.parent = branch_at(cursor.at, sign == '\\');
    if (sign == '+') branches_[cursor.at] = {cursor.parent, false};
    ++cursor.at;
  } else {
    reset();
  }
  bool any = false;
  while (cursor.at < text.size()) {
    const char c = text[cursor.at];
    if (c == '-') {
      ++cursor.at;
    } else if (c == '+') {
      branches_[cursor.at] = {cursor.parent, false};
      ++cursor.at;
    } else if (c == '[') {
      if (!bus(cursor, machine)) return any;
      any = true;
    } else if (is_slot(text.substr(cursor.at))) {
      any = function(cursor, machine);
    } else {
      break;
    }
  }
  if (cursor.function && cursor.at < text.size())
    read_lspci_description(text::trim(text.substr(cursor.at)), false,
                           machine.functions[*cursor.function]);
  return any;
}

}  // namespace gdr::observed
