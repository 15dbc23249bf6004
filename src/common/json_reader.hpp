#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/json.hpp"
#include "src/common/units.hpp"

namespace gdr::json {

/// Describes a value for error messages: its text if short, else "an array" or "an object".
std::string describe(const Value& value);

/// A place in a JSON document: the value, the file it came from and its path
/// ("/hosts/0/devices/3/link"). Reading is strict: every accessor throws InputError "FILE: at PATH:
/// found ..., allowed ..." on anything unexpected.
class Node {
 public:
  Node(const Value& value, std::string file, std::string path = "");

  [[nodiscard]] const Value& value() const { return *value_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] std::string string() const;
  /// A name: letters, digits, and -._ only, so that HOST/DEVICE.FIELD can be parsed.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool boolean() const;
  /// An integer in [low, high].
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const;
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] Bandwidth bandwidth() const;
  [[nodiscard]] Duration duration() const;
  /// The position of the string in `allowed`.
  [[nodiscard]] std::size_t choice(std::span<const std::string_view> allowed) const;
  [[nodiscard]] std::vector<Node> array() const;

  /// Throws InputError with this place in front.
  [[noreturn]] void fail(std::string_view found, std::string_view allowed) const;
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const Value* value_;
  std::string file_;
  std::string path_;
};

/// Reads an object member by member. finish() refuses members that were not read and lists the
/// allowed names.
class ObjectReader {
 public:
  explicit ObjectReader(const Node& node);

  [[nodiscard]] const Node& node() const { return node_; }
  /// Throws InputError when the member is missing.
  Node required(std::string_view name);
  std::optional<Node> optional(std::string_view name);
  /// Returns all members as (name, node) and marks them as read; for objects whose names are data.
  std::vector<std::pair<std::string, Node>> all();
  /// Every file carries `"format": 1`.
  void expect_format();
  void finish() const;

 private:
  Node node_;
  const Object* object_;
  std::vector<std::string> known_;
};

}  // namespace gdr::json
