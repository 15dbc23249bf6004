// Keeps the tree in order: functions of at most 70 lines, one format, no unused header, includes
// that only point to lower rooms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "src/common/file.hpp"

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

/// The headers that `file` includes in quotation marks, as written.
std::set<std::string> includes_of(const std::string& file) {
  std::set<std::string> headers;
  std::istringstream text(gdr::read_file(project + "/" + file));
  const std::string begin = "#include \"";
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(begin))
      headers.insert(line.substr(begin.size(), line.find('"', begin.size()) - begin.size()));
  return headers;
}

/// The end of the literal, comment or preprocessor line that starts at `at`; `at` itself if none
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

/// The code without literals and comments; line numbers stay the same.
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

TEST(Tidy, FunctionsAreShort) {
  for (const std::string& file : sources())
    for (const auto& [first, count] : functions_of(bare_code(gdr::read_file(project + "/" + file))))
      EXPECT_LE(count, 70U) << file << ":" << first << ": a function of " << count << " lines";
}

TEST(Tidy, TheScannerSeesFunctions) {
  const auto functions =
      functions_of(bare_code("int f(int a) {\n  // }\n  const char* s = \"}\";\n  if (a) {\n  }\n  "
                             "return 1'0;\n}\nstruct S {\n  int x;\n};\n"));
  EXPECT_EQ(functions, (std::vector<std::pair<std::size_t, std::size_t>>{{1, 7}}));
}

TEST(Tidy, EveryHeaderIsIncluded) {
  std::set<std::string> included;
  const auto files = sources();
  for (const std::string& file : files) included.merge(includes_of(file));
  for (const std::string& file : files)
    EXPECT_TRUE(!file.ends_with(".hpp") || included.contains(file))
        << file << " is included by nothing";
}

TEST(Tidy, AnIncludeIsAPathFromTheRoot) {
  for (const std::string& file : sources()) {
    if (file.starts_with("examples/")) continue;  // they include what is installed
    for (const std::string& header : includes_of(file))
      EXPECT_TRUE(std::filesystem::exists(project + "/" + header))
          << file << " includes \"" << header << '"';
  }
}

/// The rooms of the product, from the ground up: a file includes files of its own room and of rooms
/// that stand before it.
const std::vector<std::string> rooms{
    "src/common",  "src/catalog", "src/topology",  "src/hardware",  "src/datapath", "sim/flow",
    "src/nccl",    "src/import",  "src/verdict",   "src/doctor",    "sim/engine",   "sim",
    "src/study",   "src/memory",  "src/transport", "emu/fabric",    "emu/process",  "emu/image",
    "emu/machine", "emu/run",     "emu/keep",      "emu/agreement", "src/report",   "src/cli"};

/// The room whose folder holds `file`, the deepest one that does; rooms.size() if it is in none.
std::size_t room_of(const std::string& file) {
  std::size_t found = rooms.size();
  for (std::size_t i = 0; i < rooms.size(); ++i)
    if (file.starts_with(rooms[i] + "/") &&
        (found == rooms.size() || rooms[i].size() > rooms[found].size()))
      found = i;
  return found;
}

bool is_product(const std::string& file) {
  return file.starts_with("src/") || file.starts_with("sim/") || file.starts_with("emu/");
}

TEST(Tidy, NoIncludePointsUp) {
  for (const std::string& file : sources()) {
    if (!is_product(file)) continue;
    const std::size_t room = room_of(file);
    ASSERT_LT(room, rooms.size()) << file << " is in no room";
    for (const std::string& header : includes_of(file)) {
      if (header == "src/memory/uapi/gdr_gpu.h") continue;
      EXPECT_LE(room_of(header), room) << file << " includes " << header;
    }
  }
}

/// A stage describes its mover's work: only the planner knows data paths.
TEST(Tidy, TheSimulatorKnowsNoPaths) {
  for (const std::string& file : sources()) {
    if (!file.starts_with("sim/")) continue;
    const std::string code = bare_code(gdr::read_file(project + "/" + file));
    for (const char* word : {"PathKind", ".path", "pageable"})
      EXPECT_EQ(code.find(word), std::string::npos) << file << " names " << word;
  }
}

TEST(Tidy, IncludesMakeNoCircle) {
  std::map<std::string, std::set<std::string>> waiting;
  for (const std::string& file : sources())
    if (is_product(file) && file.ends_with(".hpp")) waiting[file] = includes_of(file);
  for (bool progress = true; progress && !waiting.empty();) {
    progress = false;
    for (auto at = waiting.begin(); at != waiting.end();) {
      const bool free = std::none_of(at->second.begin(), at->second.end(),
                                     [&](const auto& header) { return waiting.contains(header); });
      progress |= free;
      at = free ? waiting.erase(at) : std::next(at);
    }
  }
  for (const auto& [file, headers] : waiting) ADD_FAILURE() << file << " is in a circle";
}

/// Where a foreign library may be included: the prefix of its headers, and the files or folders.
const std::vector<std::pair<std::string, std::vector<std::string>>> seams{
    {"nlohmann/", {"src/common/json.cpp"}},
    {"pugixml", {"src/common/xml_tree.cpp"}},
    {"boost/graph/", {"src/hardware/graph.cpp"}},
    {"boost/crc", {"src/transport/lanes/crc32c.cpp"}},
    {"simgrid/", {"sim/engine/fluid.cpp"}},
    {"infiniband/", {"src/transport/verbs/ibverbs.cpp"}},
    {"rdma/", {"src/transport/lanes/byte_stream.cpp"}},
    {"cuda", {"src/memory/cuda/declarations_check.cpp"}},
    {"archive",
     {"src/import/captured_files.cpp", "emu/image/initramfs.cpp", "emu/image/kernel_image.cpp"}},
    {"zlib", {"src/import/rdma_topo.cpp"}},
    {"CLI/", {"src/cli/"}}};

TEST(Tidy, AForeignLibraryEntersInOnePlace) {
  std::set<std::string> seen;
  for (const std::string& file : sources()) {
    if (!is_product(file)) continue;
    std::istringstream text(gdr::read_file(project + "/" + file));
    for (std::string line; std::getline(text, line);)
      for (const auto& [header, places] : seams) {
        if (!line.starts_with("#include <" + header)) continue;
        seen.insert(header);
        EXPECT_TRUE(std::any_of(places.begin(), places.end(),
                                [&](const auto& place) { return file.starts_with(place); }))
            << file << ": " << line;
      }
  }
  EXPECT_EQ(seen.size(), seams.size()) << "a seam that nothing uses";
}

TEST(Tidy, NoFolderHasMoreThan25Sources) {
  std::map<std::string, int> count;
  for (const std::string& file : sources())
    if (is_product(file) && file.ends_with(".cpp"))
      ++count[std::filesystem::path(file).parent_path().string()];
  for (const auto& [folder, files] : count)
    EXPECT_LE(files, 25) << folder << " has " << files << " sources";
}

/// Each version of clang-format lays code out in its own way: the tree follows that of Debian 12.
TEST(Tidy, SourcesAreFormatted) {
  const std::string name = "clang-format-14";
  if (std::system((name + " --version >/dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << name << " is not installed (Debian 13 has none)";
  std::string command = "cd '" + project + "' && " + name + " --dry-run -Werror";
  for (const std::string& file : sources()) command += " " + file;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
