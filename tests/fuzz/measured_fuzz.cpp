#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/study/figures.hpp"

/// Output of benchmarks: a figure that is read is one that can be compared.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    for (const gdr::study::Figure& figure : gdr::study::read_figures(text, "fuzz")) {
      gdr::check(figure.bandwidth.has_value() != figure.latency.has_value(),
                 "a figure is a bandwidth or a latency");
      const double value =
          figure.bandwidth ? figure.bandwidth->bytes_per_second : figure.latency->seconds;
      gdr::check(std::isfinite(value) && value > 0, "a figure that is not finite and positive");
    }
  } catch (const gdr::InputError&) {
  }
  return 0;
}
