#include "src/common/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "src/common/error.hpp"

namespace gdr::json {
std::string describe(const Value& value) {
  if (value.is_null()) return "null";
  if (const auto* text = value.as<std::string>()) return fmt::format("\"{}\"", printable(*text));
  if (value.as<Array>() != nullptr) return "an array";
  if (value.as<Object>() != nullptr) return "an object";
  std::string text = dump(value);
  text.resize(text.find('\n'));
  // Print 3.0 as "3.0": where an integer is required, "found 3" would not explain the error.
  if (value.as<double>() != nullptr && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Node::Node(const Value& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

void Node::fail(std::string_view problem) const {
  throw InputError(fmt::format("{}: at {}: {}", file_, path_.empty() ? "/" : printable(path_, 200),
                               printable(problem, 2000)));
}

void Node::fail(std::string_view found, std::string_view allowed) const {
  fail(fmt::format("found {}, allowed: {}", found, allowed));
}

std::string Node::string() const {
  const auto* text = value_->as<std::string>();
  if (text == nullptr) fail(describe(*value_), "a string");
  return *text;
}

std::string Node::name() const {
  std::string text = string();
  const auto good = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), good))
    fail(describe(*value_), "a name of letters, digits, '-', '_' and '.'");
  return text;
}

bool Node::boolean() const {
  const auto* b = value_->as<bool>();
  if (b == nullptr) fail(describe(*value_), "true or false");
  return *b;
}

std::int64_t Node::integer(std::int64_t low, std::int64_t high) const {
  const auto* i = value_->as<std::int64_t>();
  if (i == nullptr || *i < low || *i > high)
    fail(describe(*value_), fmt::format("an integer from {} to {}", low, high));
  return *i;
}

namespace {

template <typename Parse>
auto quantity(const Node& node, std::string_view example, Parse parse) {
  const auto* text = node.value().as<std::string>();
  if (text == nullptr) {
    if (const auto* i = node.value().as<std::int64_t>(); i != nullptr && *i == 0) return parse("0");
    node.fail(describe(node.value()), fmt::format("a string with a unit such as \"{}\"", example));
  }
  try {
    return parse(*text);
  } catch (const InputError& error) {
    node.fail(error.what());
  }
}

}  // namespace

Bytes Node::bytes() const { return quantity(*this, "4KiB", parse_bytes); }
Bandwidth Node::bandwidth() const { return quantity(*this, "25GB/s", parse_bandwidth); }
Duration Node::duration() const { return quantity(*this, "105ns", parse_duration); }

std::size_t Node::choice(std::span<const std::string_view> allowed) const {
  if (const auto* text = value_->as<std::string>())
    for (std::size_t i = 0; i < allowed.size(); ++i)
      if (allowed[i] == *text) return i;
  fail(describe(*value_), fmt::format("{}", fmt::join(allowed, ", ")));
}

std::vector<Node> Node::array() const {
  const auto* items = value_->as<Array>();
  if (items == nullptr) fail(describe(*value_), "an array");
  std::vector<Node> nodes;
  nodes.reserve(items->size());
  for (std::size_t i = 0; i < items->size(); ++i)
    nodes.emplace_back((*items)[i], file_, fmt::format("{}/{}", path_, i));
  return nodes;
}

ObjectReader::ObjectReader(const Node& node) : node_(node), object_(node.value().as<Object>()) {
  if (object_ == nullptr) node.fail(describe(node.value()), "an object");
}

Node ObjectReader::required(std::string_view name) {
  if (auto member = optional(name)) return *member;
  node_.fail(fmt::format("the member \"{}\" is missing; it is required", name));
}

std::optional<Node> ObjectReader::optional(std::string_view name) {
  known_.emplace_back(name);
  if (const Value* value = node_.value().find(name))
    return Node(*value, node_.file(), fmt::format("{}/{}", node_.path(), name));
  return std::nullopt;
}

std::vector<std::pair<std::string, Node>> ObjectReader::all() {
  std::vector<std::pair<std::string, Node>> members;
  for (const auto& [name, value] : *object_) {
    known_.push_back(name);
    members.emplace_back(name, Node(value, node_.file(), fmt::format("{}/{}", node_.path(), name)));
  }
  return members;
}

void ObjectReader::expect_format() {
  const Node format = required("format");
  const auto* version = format.value().as<std::int64_t>();
  if (version == nullptr || *version != 1)
    format.fail(describe(format.value()), "1 (the only format that this version reads)");
}

void ObjectReader::finish() const {
  for (const auto& [name, value] : *object_)
    if (std::find(known_.begin(), known_.end(), name) == known_.end())
      node_.fail(fmt::format("unknown member \"{}\"", printable(name)),
                 fmt::format("{}", fmt::join(known_, ", ")));
}

}  // namespace gdr::json
