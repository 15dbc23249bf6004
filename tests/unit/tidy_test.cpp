// Size is looked at by a test: headers of 200 lines, sources of 400, functions of 70; and no file
// that nothing includes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/file.hpp"

namespace {

const std::string project = GDR_PROJECT_DIR;

std::vector<std::string> sources() {
  std::vector<std::string> files;
  for (const char* folder : {"src", "sim", "emu", "tests", "bench", "examples"}) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(project + "/" + folder, error))
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp")
        files.push_back(std::filesystem::relative(entry.path(), project).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The end of the literal, comment or preprocessor line that starts at `at`; `at` itself where none
/// does.
std::size_t skip_token(const std::string& text, std::size_t at) {
  const auto after = [&](const std::string& end, std::size_t from) {
    const auto found = text.find(end, from);
    return found == std::string::npos ? text.size() : found + end.size();
  };
  const bool directive = text[at] == '#' && (at == 0 || text[at - 1] == '\n');
  if (directive || text.compare(at, 2, "//") == 0)
    return std::min(text.find('\n', at), text.size());
  if (text.compare(at, 2, "/*") == 0) return after("*/", at + 2);
  if (text.compare(at, 2, "R\"") == 0) {
    const auto open = text.find('(', at);
    return after(")" + text.substr(at + 2, open - at - 2) + "\"", open);
  }
  const bool digit_separator =
      text[at] == '\'' && at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1])) != 0;
  if ((text[at] != '"' && text[at] != '\'') || digit_separator) return at;
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

/// The code without literals and comments; lines stay where they are.
std::string bare_code(const std::string& text) {
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = skip_token(text, at);
    if (end == at) {
      code += text[at++];
    } else {
      code.append(static_cast<std::size_t>(
                      std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), '\n')),
                  '\n');
      at = end;
    }
  }
  return code;
}

struct Block {
  bool function = false;
  std::size_t first_line = 0;
};

/// Lines (first, count) of every block whose head has parentheses and is no control statement:
/// functions and lambdas.
std::vector<std::pair<std::size_t, std::size_t>> functions_of(const std::string& code) {
  std::vector<std::pair<std::size_t, std::size_t>> functions;
  std::vector<Block> open;
  std::string head;
  std::size_t line = 1;
  std::size_t head_line = 1;
  for (const char c : code) {
    if (c == '\n') ++line;
    if (c == '{') {
      const bool control =
          head.starts_with("if") || head.starts_with("for") || head.starts_with("while") ||
          head.starts_with("switch") || head.starts_with("else") || head.starts_with("class") ||
          head.starts_with("struct") || head.starts_with("namespace") || head.starts_with("TEST");
      open.push_back({!control && head.find(')') != std::string::npos, head_line});
    } else if (c == '}' && !open.empty()) {
      if (open.back().function)
        functions.emplace_back(open.back().first_line, line - open.back().first_line + 1);
      open.pop_back();
    }
    if (c == '{' || c == '}' || c == ';') {
      head.clear();
    } else if (!head.empty() || !std::isspace(static_cast<unsigned char>(c))) {
      if (head.empty()) head_line = line;
      head += c;
    }
  }
  return functions;
}

TEST(Tidy, HeadersSourcesAndFunctionsAreShort) {
  for (const std::string& file : sources()) {
    const std::string text = gdr::read_file(project + "/" + file);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    const std::size_t limit = file.ends_with(".hpp") ? 200 : 400;
    EXPECT_LE(lines, limit) << file << " has " << lines << " lines";
    for (const auto& [first, count] : functions_of(bare_code(text)))
      EXPECT_LE(count, 70U) << file << ":" << first << ": a function of " << count << " lines";
  }
}

TEST(Tidy, TheScannerSeesFunctions) {
  const auto functions =
      functions_of(bare_code("int f(int a) {\n  // }\n  const char* s = \"}\";\n  if (a) {\n  }\n  "
                             "return 1'0;\n}\nstruct S {\n  int x;\n};\n"));
  EXPECT_EQ(functions, (std::vector<std::pair<std::size_t, std::size_t>>{{1, 7}}));
}

TEST(Tidy, EveryHeaderIsIncluded) {
  std::string all;
  const auto files = sources();
  for (const std::string& file : files) all += gdr::read_file(project + "/" + file);
  for (const std::string& file : files) {
    if (!file.ends_with(".hpp")) continue;
    const std::string name = file.starts_with("src/") ? file.substr(4) : file;
    const bool included = all.find("#include \"" + name + "\"") != std::string::npos;
    const std::string beside = std::filesystem::path(file).filename().string();
    EXPECT_TRUE(included || all.find("#include \"" + beside + "\"") != std::string::npos)
        << file << " is included by nothing";
  }
}

}  // namespace
