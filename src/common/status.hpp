#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/common/check.hpp"

namespace gdr {

/// Why an operation on the data path ended as it did. docs/transport.md says when each comes and
/// within what time.
enum class Cause {
  ok,
  invalid,  ///< the caller asked for what cannot be: a pointer of no allocation, a size beyond it
  out_of_memory,         ///< the device, or the host, has none left
  registration_refused,  ///< the NIC or the driver does not register that memory
  memory_freed,          ///< memory was freed while an operation used it
  queue_full,            ///< too many operations are waiting; ask again when some have ended
  timed_out,             ///< the limit of the operation is over
  peer_gone,             ///< the peer closed, died, or does not answer
  peer_failed,           ///< the peer said why it cannot go on
  link_lost,             ///< the port of the NIC is down
  remote_access,         ///< the peer's NIC refused the address or key
  corrupt,               ///< the bytes that arrived are not those that were sent
  device_failed,         ///< NIC or GPU reported an error of its own
  protocol,              ///< the peer said what it must not
  cancelled,             ///< the caller closed the connection
};

std::string_view to_string(Cause cause);

/// The outcome of an operation: ok, or a cause with one sentence that names the place. One that is
/// ok costs a pointer to hand on.
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
