#include <cstddef>
#include <cstdint>
#include <string>

#include "src/common/error.hpp"
#include "src/nccl/log.hpp"

/// Reads an NCCL_DEBUG=INFO log with its own version, a new version and an old one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* version : {"", "2.30.3", "2.4.8"}) {
    try {
      gdr::nccl::read_log(text, "fuzz", version);
    } catch (const gdr::InputError&) {
    }
  }
  return 0;
}
