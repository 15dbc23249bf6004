#include "src/common/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::json {
namespace {

constexpr std::size_t max_depth = 64;

/// Builds a Value from the events of nlohmann's SAX parser.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return add(Value()); }
  bool boolean(bool b) { return add(Value(b)); }
  bool number_integer(number_integer_t i) { return add(Value(static_cast<std::int64_t>(i))); }
  bool number_unsigned(number_unsigned_t i) {
    if (i > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      return fail_here(fmt::format("the integer {} is too large", i));
    return add(Value(static_cast<std::int64_t>(i)));
  }
  bool number_float(number_float_t d, const string_t& text) {
    // nlohmann turns an integer beyond 64 bits into a floating-point number.
    if (text.find_first_of(".eE") == string_t::npos)
      return fail_here(fmt::format("the integer {} is too large", printable(text)));
    return add(Value(static_cast<double>(d)));
  }
  bool string(string_t& s) { return add(Value(std::move(s))); }
  bool binary(binary_t& /*bytes*/) { return fail("binary data"); }
  bool start_object(std::size_t /*size*/) { return open(Value(Object{})); }
  bool start_array(std::size_t /*size*/) { return open(Value(Array{})); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    check(stack_.back().value.as<Object>() != nullptr, "a key outside an object");
    stack_.back().key.clear();
    if (!stack_.back().names.insert(name).second)
      return fail_here(fmt::format("the name \"{}\" appears twice in one object; it must be unique",
                                   printable(name)));
    stack_.back().key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    std::string text = error.what();
    // Drop nlohmann's "[json.exception.parse_error.101] parse error " prefix: what follows names
    // line and column.
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
    if (text.starts_with("parse error ")) text.erase(0, std::string_view("parse error ").size());
    // The quoted token may be invalid UTF-8 or as long as the file.
    for (char& c : text)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    return fail(printable(text, 300));
  }

  [[nodiscard]] const std::optional<std::string>& error() const { return error_; }
  Value take() { return std::move(root_); }

 private:
  struct Level {
    Value value;
    std::string key;
    std::set<std::string>
        names;  ///< names of an object's members; a linear search would be quadratic
  };

  bool fail(std::string text) {
    error_ = std::move(text);
    return false;
  }
  /// As fail(), with the parser's current place in front, such as "/hosts/0/devices/3".
  bool fail_here(std::string_view text) {
    std::string path;
    for (const Level& level : stack_) {
      if (const auto* array = level.value.as<Array>()) path += fmt::format("/{}", array->size());
      else if (!level.key.empty()) path += "/" + level.key;
    }
    return fail(fmt::format("at {}: {}", path.empty() ? "/" : printable(path, 200), text));
  }
  bool open(Value value) {
    if (stack_.size() >= max_depth)
      return fail_here(fmt::format("nested deeper than {} levels", max_depth));
    stack_.push_back({std::move(value), {}, {}});
    return true;
  }
  bool close() {
    Value value = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(value));
  }
  bool add(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = stack_.back().value.as<Array>()) {
      array->push_back(std::move(value));
    } else {
      stack_.back().value.as<Object>()->emplace_back(std::move(stack_.back().key),
                                                     std::move(value));
    }
    return true;
  }

  std::vector<Level> stack_;
  Value root_;
  std::optional<std::string> error_;
};

std::string quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string number(double d) {
  if (!std::isfinite(d)) return "null";
  if (d == 0) return "0";  // "-0" would be read back as an integer, which has no negative zero
  // 15 digits keep 0.1 as 0.1 and suffice for every figure that gdr prints.
  return fmt::format("{:.10g}", d);
}

struct Writer {
  int width;
  std::string out;

  static std::string scalar(const Value& value) {
    if (value.is_null()) return "null";
    if (const auto* b = value.as<bool>()) return *b ? "true" : "false";
    if (const auto* i = value.as<std::int64_t>()) return fmt::format("{}", *i);
    if (const auto* d = value.as<double>()) return number(*d);
    return quote(*value.as<std::string>());
  }

  static std::string flat(const Value& value) {
    std::string text;
    if (const auto* array = value.as<Array>()) {
      for (const Value& item : *array) text += (text.empty() ? "" : ", ") + flat(item);
      return "[" + text + "]";
    }
    if (const auto* object = value.as<Object>()) {
      for (const auto& [name, item] : *object)
        text += (text.empty() ? "" : ", ") + quote(name) + ": " + flat(item);
      return "{" + text + "}";
    }
    return scalar(value);
  }

  void write(const Value& value, int indent, int used) {
    const auto* array = value.as<Array>();
    const auto* object = value.as<Object>();
    if (array == nullptr && object == nullptr) {
      out += scalar(value);
      return;
    }
    if (std::string line = flat(value); static_cast<int>(line.size()) + used <= width) {
      out += line;
      return;
    }
    const std::string pad(static_cast<std::size_t>(indent) + 2, ' ');
    out += array != nullptr ? "[\n" : "{\n";
    bool first = true;
    const auto item = [&](const std::string& name, const Value& child) {
      if (!first) out += ",\n";
      first = false;
      out += pad + name;
      write(child, indent + 2, indent + 2 + static_cast<int>(name.size()));
    };
    if (array != nullptr)
      for (const Value& child : *array) item("", child);
    else
      for (const auto& [name, child] : *object) item(quote(name) + ": ", child);
    out +=
        "\n" + std::string(static_cast<std::size_t>(indent), ' ') + (array != nullptr ? "]" : "}");
  }
};

}  // namespace

const Value* Value::find(std::string_view name) const {
  if (const auto* object = as<Object>())
    for (const auto& [key, value] : *object)
      if (key == name) return &value;
  return nullptr;
}

Value* Value::find(std::string_view name) {
  return const_cast<Value*>(std::as_const(*this).find(name));
}

void Value::set(std::string_view name, Value value) {
  if (is_null()) storage_ = Object{};
  auto* object = as<Object>();
  check(object != nullptr, "set() on a JSON value that is not an object");
  if (Value* existing = find(name)) {
    *existing = std::move(value);
  } else {
    object->emplace_back(std::string(name), std::move(value));
  }
}

Value parse(std::string_view text, std::string_view name) {
  Builder builder;
  const bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (builder.error()) throw InputError(fmt::format("{}: {}", name, *builder.error()));
  if (!ok) throw InputError(fmt::format("{}: not JSON", name));
  return builder.take();
}

Value parse_file(const std::string& path) { return parse(read_file(path), path); }

std::string dump(const Value& value, int width) {
  Writer writer{width, {}};
  writer.write(value, 0, 0);
  return writer.out + "\n";
}

}  // namespace gdr::json
