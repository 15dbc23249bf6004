#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace gdr {

/// Bad input: a file, an option or a value given by the user. The message is one line that names
/// the place, what was found and what is allowed. Thrown while things are set up; caught only in
/// main (exit code 2).
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What was found, fit for a message of one line: control characters as \xNN, cut after `limit`
/// bytes with "..." behind.
std::string printable(std::string_view text, std::size_t limit = 60);

}  // namespace gdr
