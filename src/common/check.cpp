#include "common/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace gdr {

void check_failed(std::string_view message, std::source_location where) {
  std::fprintf(stderr, "gdr: internal error: %.*s (%s:%u); please report this with the command and its input\n",
               static_cast<int>(message.size()), message.data(), where.file_name(), where.line());
  std::abort();
}

}  // namespace gdr
