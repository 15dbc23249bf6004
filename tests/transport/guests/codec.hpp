#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "src/common/error.hpp"
#include "tests/transport/end.hpp"

/// Values as bytes, between two processes of one program.
namespace gdr::transport {

class Writer {
 public:
  void raw(const void* from, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    if (size > 0) std::memcpy(bytes_.data() + at, from, size);
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  void raw(void* to, std::size_t size) {
    if (size > bytes_.size() - at_) throw InputError("the other end says less than it must");
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

 private:
  const std::vector<std::byte>& bytes_;
  std::size_t at_ = 0;
};

template <typename T>
struct Codec {
  static_assert(std::is_trivially_copyable_v<T>);
  static void put(Writer& to, const T& value) { to.raw(&value, sizeof(value)); }
  static T get(Reader& from) {
    T value{};
    from.raw(&value, sizeof(value));
    return value;
  }
};

template <typename T>
void put(Writer& to, const T& value) {
  Codec<T>::put(to, value);
}
template <typename T>
T get(Reader& from) {
  return Codec<T>::get(from);
}

template <typename T>
struct Codec<std::vector<T>> {
  static void put(Writer& to, const std::vector<T>& values) {
    Codec<std::size_t>::put(to, values.size());
    if constexpr (std::is_trivially_copyable_v<T>) to.raw(values.data(), values.size() * sizeof(T));
    else
      for (const T& value : values) Codec<T>::put(to, value);
  }
  static std::vector<T> get(Reader& from) {
    const auto count = Codec<std::size_t>::get(from);
    std::vector<T> values;
    if constexpr (std::is_trivially_copyable_v<T>) {
      values.resize(count);
      from.raw(values.data(), count * sizeof(T));
    } else {
      for (std::size_t i = 0; i < count; ++i) values.push_back(Codec<T>::get(from));
    }
    return values;
  }
};

template <>
struct Codec<std::string> {
  static void put(Writer& to, const std::string& text) {
    Codec<std::vector<char>>::put(to, {text.begin(), text.end()});
  }
  static std::string get(Reader& from) {
    const auto text = Codec<std::vector<char>>::get(from);
    return {text.begin(), text.end()};
  }
};

template <typename T>
struct Codec<std::optional<T>> {
  static void put(Writer& to, const std::optional<T>& value) {
    Codec<bool>::put(to, value.has_value());
    if (value) Codec<T>::put(to, *value);
  }
  static std::optional<T> get(Reader& from) {
    if (!Codec<bool>::get(from)) return std::nullopt;
    return Codec<T>::get(from);
  }
};

template <>
struct Codec<Status> {
  static void put(Writer& to, const Status& status) {
    Codec<Cause>::put(to, status.cause());
    Codec<std::string>::put(to, status.text());
  }
  static Status get(Reader& from) {
    const auto cause = Codec<Cause>::get(from);
    return {cause, Codec<std::string>::get(from)};
  }
};

template <typename T>
struct Codec<Result<T>> {
  static void put(Writer& to, const Result<T>& result) {
    Codec<Status>::put(to, result.status());
    if (result.ok()) Codec<T>::put(to, result.value());
  }
  static Result<T> get(Reader& from) {
    auto status = Codec<Status>::get(from);
    if (!status.ok()) return Result<T>(std::move(status));
    return Result<T>(Codec<T>::get(from));
  }
};

template <>
struct Codec<OperationResult> {
  static void put(Writer& to, const OperationResult& finished) {
    Codec<Status>::put(to, finished.status);
    Codec<Bytes>::put(to, finished.size);
    Codec<std::uint64_t>::put(to, finished.old_value);
  }
  static OperationResult get(Reader& from) {
    auto status = Codec<Status>::get(from);
    const auto size = Codec<Bytes>::get(from);
    return {std::move(status), size, Codec<std::uint64_t>::get(from)};
  }
};

template <>
struct Codec<NicChoice> {
  static void put(Writer& to, const NicChoice& nic) {
    Codec<std::string>::put(to, nic.name);
    Codec<std::optional<unsigned>>::put(to, nic.gid_index);
    Codec<std::optional<NicDistance>>::put(to, nic.distance);
  }
  static NicChoice get(Reader& from) {
    NicChoice nic;
    nic.name = Codec<std::string>::get(from);
    nic.gid_index = Codec<std::optional<unsigned>>::get(from);
    nic.distance = Codec<std::optional<NicDistance>>::get(from);
    return nic;
  }
};

/// All but the log function.
template <>
struct Codec<TransportOptions> {
  template <typename Options>
  static auto plain(Options& o) {
    return std::tie(o.path, o.level, o.gid_index, o.queue_pairs, o.chunk, o.depth, o.queue_depth,
                    o.operations, o.largest_message, o.limit, o.setup_limit, o.timeout, o.retries,
                    o.check);
  }
  static void put(Writer& to, const TransportOptions& options) {
    std::apply([&](const auto&... value) { (gdr::transport::put(to, value), ...); },
               plain(options));
    Codec<std::vector<NicChoice>>::put(to, options.nics);
  }
  static TransportOptions get(Reader& from) {
    TransportOptions options;
    std::apply(
        [&](auto&... value) {
          ((value = gdr::transport::get<std::decay_t<decltype(value)>>(from)), ...);
        },
        plain(options));
    options.nics = Codec<std::vector<NicChoice>>::get(from);
    return options;
  }
};

}  // namespace gdr::transport
