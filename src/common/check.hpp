#pragma once

#include <string_view>

namespace gdr {

/// Ends the program with file, line and `message`: a bug of ours, never bad input.
[[noreturn]] void check_failed(std::string_view message, const char* file, int line);

/// Holds an invariant in every build type. The place is the caller's (the builtins: clang 14 has no
/// std::source_location).
inline void check(bool holds, std::string_view message, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) check_failed(message, file, line);
}

}  // namespace gdr
