#include "src/memory/backends.hpp"

#include <fmt/format.h>

#include <charconv>

#include "src/common/error.hpp"

namespace gdr::memory {

std::unique_ptr<DeviceMemory> make_memory(const std::string& text) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  unsigned index = 0;
  bool valid = kind != "host" || colon == std::string::npos;
  if (colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, index);
    valid = valid && error == std::errc() && stop == end && index < 256;
  }
  if (valid && kind == "host") return make_host_memory();
  if (valid && kind == "bar") return make_bar_memory(index);
  if (valid && kind == "cuda") return make_cuda_memory(index);
  if (valid && kind == "fake") {
    FakeOptions options;
    options.index = index;
    return make_fake_memory(options);
  }
  throw InputError(
      fmt::format("memory \"{}\": it is host, or fake, bar or cuda with a number of 0 to 255 "
                  "behind, as in bar:0",
                  printable(text)));
}

}  // namespace gdr::memory
