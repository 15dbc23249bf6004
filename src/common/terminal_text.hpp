#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdr::text {

// Helpers that parse the output of command-line tools.

std::string_view trim(std::string_view text);
/// Splits at blanks.
std::vector<std::string_view> split_words(std::string_view text);
/// Splits into lines, without "\n" and "\r\n".
std::vector<std::string_view> lines(std::string_view text);
/// Removes ANSI escape sequences, raw or in caret notation ("^[[4m"), and all control characters
/// except tabs.
std::string without_escapes(std::string_view line);

/// The number at the start of a text; nullopt if there is none or it exceeds int.
std::optional<int> leading_int(std::string_view text, int base = 10);
/// The whole text as a number; nullopt if anything else is in it.
std::optional<int> whole_int(std::string_view text, int base = 10);
/// The number after `key` ("NUMA node:" in "NUMA node: 1").
std::optional<int> int_after(std::string_view text, std::string_view key, int base = 10);
/// The text after `key`, trimmed; nullopt if the key is missing.
std::optional<std::string_view> after(std::string_view text, std::string_view key);

/// The text reduced to printable ASCII and at most `longest` characters, for names and messages.
std::string printable(std::string_view text, std::size_t longest = 120);

}  // namespace gdr::text
