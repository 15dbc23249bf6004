#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gdr::json {

class Value;
using Array = std::vector<Value>;
/// Members in file order. Names are unique: the parser refuses duplicates.
using Object = std::vector<std::pair<std::string, Value>>;

/// A JSON document as plain data. This is the only JSON type outside json.cpp.
class Value {
 public:
  using Storage =
      std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object>;

  Value() = default;
  Value(std::nullptr_t) {}        // NOLINT(google-explicit-constructor): a JSON literal
  Value(bool b) : storage_(b) {}  // NOLINT(google-explicit-constructor)
  Value(int i) : storage_(std::int64_t{i}) {}  // NOLINT(google-explicit-constructor)
  Value(std::int64_t i) : storage_(i) {}       // NOLINT(google-explicit-constructor)
  Value(std::uint64_t i)
      : storage_(static_cast<std::int64_t>(i)) {}          // NOLINT(google-explicit-constructor)
  Value(double d) : storage_(d) {}                         // NOLINT(google-explicit-constructor)
  Value(std::string s) : storage_(std::move(s)) {}         // NOLINT(google-explicit-constructor)
  Value(std::string_view s) : storage_(std::string(s)) {}  // NOLINT(google-explicit-constructor)
  Value(const char* s) : storage_(std::string(s)) {}       // NOLINT(google-explicit-constructor)
  Value(Array a) : storage_(std::move(a)) {}               // NOLINT(google-explicit-constructor)
  Value(Object o) : storage_(std::move(o)) {}              // NOLINT(google-explicit-constructor)

  [[nodiscard]] const Storage& storage() const { return storage_; }
  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&storage_);
  }
  template <typename T>
  [[nodiscard]] T* as() {
    return std::get_if<T>(&storage_);
  }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(storage_); }

  /// The member called `name`; nullptr when it is missing or this is not an object.
  [[nodiscard]] const Value* find(std::string_view name) const;
  [[nodiscard]] Value* find(std::string_view name);
  /// Sets a member of an object; null becomes an object first. An existing member keeps its place.
  void set(std::string_view name, Value value);

  bool operator==(const Value&) const = default;

 private:
  Storage storage_ = nullptr;
};

/// Parses `text`; `name` stands for the source in errors. Throws InputError on a syntax error (with
/// line and column), a duplicate name in an object, nesting deeper than 64, or an integer beyond 64
/// bits.
Value parse(std::string_view text, std::string_view name);

/// Reads and parses a file. Throws InputError when it cannot be read, is larger than 64 MiB, or
/// does not parse.
Value parse_file(const std::string& path);

/// Writes JSON with two spaces of indentation. An array or object that fits into `width` columns
/// stays on one line.
std::string dump(const Value& value, int width = 110);

}  // namespace gdr::json
