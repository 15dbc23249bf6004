#include "emu/run/console_lines.hpp"

#include <fstream>
#include <iterator>

#include "src/common/error.hpp"

namespace gdr::emu {

std::vector<std::string> ConsoleLines::take() {
  std::vector<std::string> lines;
  std::ifstream file(file_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at_));
  if (!file) return lines;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    constexpr std::string_view ours = "gdr: ";
    constexpr std::size_t longest = 300;
    if (const auto found = line.find(ours); found != std::string::npos)
      lines.push_back(printable(line.substr(found + ours.size()), longest));
  }
  at_ += begin;
  return lines;
}

}  // namespace gdr::emu
