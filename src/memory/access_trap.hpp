#pragma once

#include <cstdint>
#include <string>

#include "src/common/units.hpp"

namespace gdr::memory {

/// While it lives, a CPU access to the range ends the process with a line on standard error that
/// names the address and the backend, before the signal takes its usual effect. A signal handler
/// sees only globals, hence the table of 256 ranges behind this class.
class AccessTrap {
 public:
  AccessTrap(const std::string& backend, std::uint64_t base, Bytes size);
  ~AccessTrap();
  AccessTrap(const AccessTrap&) = delete;
  AccessTrap& operator=(const AccessTrap&) = delete;

 private:
  int place_ = -1;
};

}  // namespace gdr::memory
