#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdr::text {

// Small readers of what terminals print.

std::string_view trim(std::string_view text);
/// Words between blanks.
std::vector<std::string_view> words(std::string_view text);
/// Lines without their ends, carriage returns included.
std::vector<std::string_view> lines(std::string_view text);
/// Without ANSI escape sequences, as the terminal's bytes or in caret notation ("^[[4m"), and
/// without control characters but tabs.
std::string without_escapes(std::string_view line);

/// The number a text begins with; nullopt: none, or beyond an int.
std::optional<int> leading_int(std::string_view text, int base = 10);
/// The whole text as a number.
std::optional<int> whole_int(std::string_view text, int base = 10);
/// The number after `key` ("NUMA node:" in "NUMA node: 1").
std::optional<int> int_after(std::string_view text, std::string_view key, int base = 10);
/// What follows `key`, trimmed; nullopt: the key is not there.
std::optional<std::string_view> after(std::string_view text, std::string_view key);

/// The text with everything but printable ASCII left out, at most `longest` characters: for names
/// and messages.
std::string printable(std::string_view text, std::size_t longest = 120);

}  // namespace gdr::text
