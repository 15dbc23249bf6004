#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::flushed:
      return "flushed";
    case Outcome::local_length:
      return "local length error";
    case Outcome::local_protection:
      return "local protection error";
    case Outcome::local_operation:
      return "local queue pair operation error";
    case Outcome::remote_access:
      return "remote access error";
    case Outcome::remote_invalid:
      return "remote invalid request";
    case Outcome::remote_operation:
      return "remote operation error";
    case Outcome::retry_exceeded:
      return "transport retry counter exceeded";
    case Outcome::rnr_exceeded:
      return "receiver not ready: retry counter exceeded";
    case Outcome::other:
      return "another error of the device";
  }
  return "?";
}

}  // namespace gdr::transport
