#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

std::string_view to_string(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::ok:
      return "ok";
    case CompletionStatus::flushed:
      return "flushed";
    case CompletionStatus::local_length:
      return "local length error";
    case CompletionStatus::local_protection:
      return "local protection error";
    case CompletionStatus::local_operation:
      return "local queue pair operation error";
    case CompletionStatus::remote_access:
      return "remote access error";
    case CompletionStatus::remote_invalid:
      return "remote invalid request";
    case CompletionStatus::remote_operation:
      return "remote operation error";
    case CompletionStatus::retry_exceeded:
      return "transport retry counter exceeded";
    case CompletionStatus::rnr_exceeded:
      return "receiver not ready: retry counter exceeded";
    case CompletionStatus::other:
      return "another error of the device";
  }
  return "?";
}

}  // namespace gdr::transport
