#include <cstddef>
#include <cstdint>

#include "tests/fuzz/import_fuzz.hpp"

/// Rows below the header of a table of nvidia-smi.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  import_or_refuse(text, "fuzz");
  import_or_refuse("\tGPU0\tGPU1\tNIC0\tmlx5_1\tCPU Affinity\tNUMA Affinity\n" + text, "fuzz");
  return 0;
}
