#include <cstddef>
#include <cstdint>

#include "tests/fuzz/import_fuzz.hpp"

/// XML of hwloc.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  import_or_refuse(text, "fuzz");
  import_or_refuse("<topology>" + text, "fuzz");
  return 0;
}
