#pragma once

#include <source_location>
#include <string_view>

namespace gdr {

/// Ends the program with file, line and `message`: a bug of ours, never bad input.
[[noreturn]] void check_failed(std::string_view message, std::source_location where);

/// Holds an invariant in every build type.
inline void check(bool holds, std::string_view message, std::source_location where = std::source_location::current()) {
  if (!holds) check_failed(message, where);
}

}  // namespace gdr
