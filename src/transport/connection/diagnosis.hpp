#pragma once

#include <string>

#include "src/transport/engine/progress_engine.hpp"

namespace gdr::transport {

/// Why a queue pair has failed.
struct Diagnosis {
  Status why;
  bool certain = true;  ///< false: the peer may report a better reason
};

/// Derives it from the completion's status and the NIC's state. `peer` is the peer's name.
Diagnosis diagnose(const Nic& nic, CompletionStatus failure, const std::string& peer);

}  // namespace gdr::transport
