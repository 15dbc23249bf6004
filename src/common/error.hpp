#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace gdr {

/// Bad input: a file, an option or a value given by the user. The message is one line that names
/// the place, what was found and what is allowed. Only set-up code throws it; main turns it into
/// exit code 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Makes `text` fit a one-line message: control characters become \xNN, and "..." replaces what
/// exceeds `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 60);

}  // namespace gdr
