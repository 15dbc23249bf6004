#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "src/memory/backends.hpp"

namespace gdr::memory {

/// A backend that the contract suite runs on.
struct BackendUnderTest {
  std::string name;
  std::function<std::unique_ptr<DeviceMemory>()> make;
  bool copy_engine = true;
  std::string skip;  ///< why it cannot run here
};
inline std::ostream& operator<<(std::ostream& out, const BackendUnderTest& backend) {
  return out << backend.name;
}

/// host, fake with three sets of faults, cuda over the stub, bar where there is a /dev/gdr-gpu0.
std::vector<BackendUnderTest> backends_under_test();

}  // namespace gdr::memory
