#include "src/common/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace gdr {

void check_failed(std::string_view message, const char* file, int line) {
  std::fprintf(
      stderr,
      "gdr: internal error: %.*s (%s:%d); please report this with the command and its input\n",
      static_cast<int>(message.size()), message.data(), file, line);
  std::abort();
}

}  // namespace gdr
