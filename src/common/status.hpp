#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/common/check.hpp"

namespace gdr {

/// Why an operation on the data path failed. docs/transport.md says when each cause is reported and
/// within what time.
enum class Cause {
  ok,
  invalid,  ///< the request is impossible: a pointer outside any allocation, a size beyond its end
  out_of_memory,         ///< the device or the host has no memory left
  registration_refused,  ///< the NIC or the driver refused to register the memory
  memory_freed,          ///< memory was freed while an operation used it
  queue_full,            ///< too many operations are waiting; retry when some have completed
  timed_out,             ///< the operation's time limit has passed
  peer_gone,             ///< the peer closed the connection, died, or does not answer
  peer_failed,           ///< the peer reported why it cannot continue
  link_lost,             ///< the NIC's port is down
  remote_access,         ///< the peer's NIC refused the address or key
  corrupt,               ///< the bytes received differ from those sent
  device_failed,         ///< the NIC or the GPU reported an internal error
  protocol,              ///< the peer violated the protocol
  cancelled,             ///< the caller closed the connection
};

std::string_view to_string(Cause cause);

/// The outcome of an operation: ok, or a cause with one sentence that names the place. An ok status
/// is one null pointer.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Cause cause, std::string text)
      : failure_(cause == Cause::ok
                     ? nullptr
                     : std::make_shared<const Failure>(Failure{cause, std::move(text)})) {}

  [[nodiscard]] bool ok() const { return failure_ == nullptr; }
  [[nodiscard]] Cause cause() const { return ok() ? Cause::ok : failure_->cause; }
  [[nodiscard]] const std::string& text() const;  ///< "" when ok
  /// "timed_out: write of 64KiB: ...", or "ok".
  [[nodiscard]] std::string to_string() const;
  bool operator==(const Status& other) const {
    return cause() == other.cause() && text() == other.text();
  }

 private:
  struct Failure {
    Cause cause;
    std::string text;
  };
  std::shared_ptr<const Failure> failure_;
};

/// A value, or the status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT
  Result(Status status) : status_(std::move(status)) {
    check(!status_.ok(), "a Result without value is an error");
  }  // NOLINT

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] T& value() {
    check(ok(), "the value of a failed Result");
    return *value_;
  }
  [[nodiscard]] const T& value() const {
    check(ok(), "the value of a failed Result");
    return *value_;
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace gdr
