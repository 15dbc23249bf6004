#include "src/common/status.hpp"

namespace gdr {

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::ok:
      return "ok";
    case Cause::invalid:
      return "invalid";
    case Cause::out_of_memory:
      return "out_of_memory";
    case Cause::registration_refused:
      return "registration_refused";
    case Cause::memory_freed:
      return "memory_freed";
    case Cause::queue_full:
      return "queue_full";
    case Cause::timed_out:
      return "timed_out";
    case Cause::peer_gone:
      return "peer_gone";
    case Cause::peer_failed:
      return "peer_failed";
    case Cause::link_lost:
      return "link_lost";
    case Cause::remote_access:
      return "remote_access";
    case Cause::corrupt:
      return "corrupt";
    case Cause::device_failed:
      return "device_failed";
    case Cause::protocol:
      return "protocol";
    case Cause::cancelled:
      return "cancelled";
  }
  return "?";
}

const std::string& Status::text() const {
  static const std::string none;
  return ok() ? none : failure_->text;
}

std::string Status::to_string() const {
  const std::string name(gdr::to_string(cause()));
  return ok() ? name : name + ": " + text();
}

}  // namespace gdr
