#pragma once

#include <string_view>

namespace gdr {

/// Prints file, line and `message`, then aborts. For bugs in gdr, never for bad input.
[[noreturn]] void check_failed(std::string_view message, const char* file, int line);

/// Checks an invariant in every build type. Builtins name the caller's line because clang 14 has no
/// std::source_location.
inline void check(bool holds, std::string_view message, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) check_failed(message, file, line);
}

}  // namespace gdr
