#include "src/common/terminal_text.hpp"

#include <charconv>

namespace gdr::text {

std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> found;
  for (text = trim(text); !text.empty(); text = trim(text)) {
    const auto end = std::min(text.find_first_of(" \t\r\n"), text.size());
    found.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return found;
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    found.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::string without_escapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\x1b';
    const bool caret = line.substr(i).starts_with("^[[");
    if (escape || caret) {
      std::size_t at = i + (escape ? 1 : 2);
      if (at < line.size() && line[at] == '[') {
        ++at;
        while (at < line.size() && (line[at] == ';' || (line[at] >= '0' && line[at] <= '9'))) ++at;
        i = std::min(at, line.size());  // the letter that ends the sequence
      }
      continue;
    }
    const auto c = static_cast<unsigned char>(line[i]);
    if (c == '\t' || (c >= 0x20 && c != 0x7f)) plain += line[i];
  }
  return plain;
}

std::optional<int> leading_int(std::string_view text, int base) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

std::optional<int> whole_int(std::string_view text, int base) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

std::optional<std::string_view> after(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return trim(text.substr(at + key.size()));
}

std::optional<int> int_after(std::string_view text, std::string_view key, int base) {
  const auto rest = after(text, key);
  return rest ? leading_int(*rest, base) : std::nullopt;
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string plain;
  for (const char c : text)
    if (c >= ' ' && c <= '~' && plain.size() < longest) plain += c;
  return plain;
}

}  // namespace gdr::text
