// The JSON in the documents loads, and docs/output.md matches what the tool prints.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/common/file.hpp"
#include "src/common/json.hpp"
#include "src/datapath/data_path.hpp"
#include "src/hardware/distance.hpp"
#include "src/nccl/rules.hpp"
#include "src/topology/topology_json.hpp"
#include "src/verdict/verdict.hpp"

namespace {

namespace fs = std::filesystem;
using gdr::json::Array;
using gdr::json::Object;
using gdr::json::Value;
using Names = std::set<std::string>;

const std::string project = GDR_PROJECT_DIR;
const std::string a100 = project + "/topologies/clusters/two-dgx-a100.json";
const std::string one_nic = project + "/topologies/clusters/two-dual-socket-4gpu-1nic.json";

struct ToolRun {
  std::string out;
  int code = 0;
};

ToolRun run_tool(const std::string& arguments) {
  ToolRun run;
  FILE* pipe =
      popen(("GDR_DATA_DIR='" + project + "' '" GDR_TOOL "' " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    run.out.append(buffer, n);
  run.code = WEXITSTATUS(pclose(pipe));
  return run;
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("gdr-documents-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// The ```json blocks of a document, with FILE:LINE.
std::vector<std::pair<std::string, std::string>> json_blocks(const std::string& file) {
  std::vector<std::pair<std::string, std::string>> blocks;
  std::istringstream in(gdr::read_file(file));
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line == "```json") blocks.emplace_back(file + ":" + std::to_string(number), "");
    if (inside && line == "```") inside = false;
    else if (inside) blocks.back().second += line + "\n";
    else inside = line == "```json";
  }
  return blocks;
}

void load_model(const std::string& kind, const std::string& name, const std::string& text) {
  Folder folder;
  folder.write(kind + "/" + name + ".json", text);
  const gdr::ModelLibrary library(folder.path());
  if (kind == "switch") (void)library.pci_switch(name);
  else if (kind == "gpu") (void)library.gpu(name);
  else if (kind == "nic") (void)library.nic(name);
  else if (kind == "cpu") (void)library.cpu(name);
  else ADD_FAILURE() << "no loader here for a model of kind " << kind;
}

TEST(Documents, EveryJsonBlockLoads) {
  std::vector<std::string> files{project + "/README.md"};
  for (const auto& entry : fs::directory_iterator(project + "/docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path().string());
  std::map<std::string, int> loaded;
  for (const std::string& file : files)
    for (const auto& [place, text] : json_blocks(file)) {
      SCOPED_TRACE(place);
      try {
        const Value document = gdr::json::parse(text, place);
        ASSERT_NE(document.find("format"), nullptr)
            << "a fragment; write it without \"json\" after the backquotes";
        if (document.find("hosts") != nullptr) {
          (void)gdr::read_topology(document, place, project + "/topologies/clusters");
          ++loaded["topology"];
        } else if (document.find("kind") != nullptr) {
          load_model(*document.find("kind")->as<std::string>(),
                     *document.find("name")->as<std::string>(), text);
          ++loaded["model"];
        } else if (document.find("cases") != nullptr) {
          Folder folder;
          const ToolRun run =
              run_tool("validate --no-ranges --format json " + folder.write("cases.json", text));
          EXPECT_LE(run.code, 1) << run.out;
          ++loaded["cases"];
        } else {
          Folder folder;
          const ToolRun run =
              run_tool("predict " + a100 + " --flows " + folder.write("flows.json", text));
          EXPECT_EQ(run.code, 0) << run.out;
          ++loaded["flows"];
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  for (const char* kind : {"topology", "model", "cases", "flows"})
    EXPECT_GE(loaded[kind], 1) << "no block holds a " << kind;
}

/// A command of a ```console block and the output below it.
struct Shown {
  std::string place;
  std::string command;
  std::vector<std::string> lines;
};

std::vector<Shown> console_blocks(const std::string& file) {
  std::vector<Shown> shown;
  std::istringstream in(gdr::read_file(file));
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (inside && line == "```") inside = false;
    else if (inside && line.starts_with("$ "))
      shown.push_back({file + ":" + std::to_string(number), line.substr(2), {}});
    else if (inside && !shown.empty()) shown.back().lines.push_back(line);
    else inside = inside || line == "```console";
  }
  return shown;
}

/// The first line of `wanted` that `output` lacks in this order; "..." stands for any lines. Empty
/// if none is lacking.
std::string missing_line(const std::vector<std::string>& wanted,
                         const std::vector<std::string>& output) {
  std::size_t at = 0;
  bool skip = false;
  for (const std::string& line : wanted) {
    if (line == "...") {
      skip = true;
      continue;
    }
    const auto from = output.begin() + static_cast<std::ptrdiff_t>(at);
    const auto found = skip ? std::find(from, output.end(), line) : from;
    if (found == output.end() || *found != line) return line;
    at = static_cast<std::size_t>(found - output.begin()) + 1;
    skip = false;
  }
  return skip || at == output.size() ? "" : "the end of the output";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Documents, ConsoleBlocksShowWhatTheToolPrints) {
  const fs::path before = fs::current_path();
  fs::current_path(project);
  std::size_t shown = 0;
  std::vector<std::string> files{project + "/README.md"};
  for (const auto& entry : fs::directory_iterator(project + "/docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path().string());
  for (const std::string& file : files)
    for (const Shown& one : console_blocks(file)) {
      SCOPED_TRACE(one.place);
      ++shown;
      ASSERT_TRUE(one.command.starts_with("gdr ")) << "only gdr is run here";
      const ToolRun run = run_tool(one.command.substr(4));
      EXPECT_LE(run.code, 1) << run.out;  // 1: the answer is no
      EXPECT_EQ(missing_line(one.lines, lines_of(run.out)), "") << run.out;
    }
  fs::current_path(before);
  EXPECT_GE(shown, 10U);
}

TEST(Documents, AShownOutputIsHeldLineByLine) {
  using Lines = std::vector<std::string>;
  const Lines output{"one", "two", "three"};
  EXPECT_EQ(missing_line({"one", "two", "three"}, output), "");
  EXPECT_EQ(missing_line({"...", "two", "..."}, output), "");
  EXPECT_EQ(missing_line({"one", "three"}, output), "three") << "a line is left out";
  EXPECT_EQ(missing_line({"one", "two"}, output), "the end of the output");
  EXPECT_EQ(missing_line({"...", "three", "two"}, output), "two") << "another order";
  EXPECT_EQ(missing_line({"...", "Three"}, output), "Three");
}

/// The words in backquotes of a text.
std::vector<std::string> code_words(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = text.find('`'); from != std::string::npos;) {
    const std::size_t to = text.find('`', from + 1);
    if (to == std::string::npos) break;
    words.push_back(text.substr(from + 1, to - from - 1));
    from = text.find('`', to + 1);
  }
  return words;
}

/// The text without its ``` blocks.
std::string without_blocks(const std::string& text) {
  std::string rest;
  bool inside = false;
  for (const std::string& line : lines_of(text)) {
    const bool fence = line.starts_with("```");
    if (fence) inside = !inside;
    if (!inside && !fence) rest += line + "\n";
  }
  return rest;
}

/// NAME.json and *.json stand for any file of their folder.
bool is_placeholder(const std::string& part) {
  const std::string stem = part.substr(0, part.find('.'));
  return stem.find('*') != std::string::npos ||
         (!stem.empty() && std::all_of(stem.begin(), stem.end(),
                                       [](unsigned char c) { return std::isupper(c) != 0; }));
}

bool path_exists(const std::string& path) {
  fs::path known = project;
  for (const fs::path& part : fs::path(path)) {
    if (is_placeholder(part.string())) return fs::is_directory(known);
    known /= part;
  }
  return fs::exists(known);
}

TEST(Documents, EveryPathInBackquotesExists) {
  static constexpr std::array<const char*, 10> roots{
      "src/",    "sim/",        "emu/",   "tests/",    "docs/",
      "models/", "topologies/", "bench/", "examples/", "scripts/"};
  std::vector<std::string> files{project + "/README.md"};
  for (const auto& entry : fs::directory_iterator(project + "/docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path().string());
  int paths = 0;
  for (const std::string& file : files)
    for (const std::string& word : code_words(without_blocks(gdr::read_file(file)))) {
      const bool is_path = std::any_of(roots.begin(), roots.end(),
                                       [&](auto root) { return word.starts_with(root); });
      if (!is_path) continue;
      ++paths;
      EXPECT_TRUE(path_exists(word.substr(0, word.find_first_of(" \n")))) << file << ": " << word;
    }
  EXPECT_GE(paths, 20);
}

TEST(Documents, AMissingPathIsFound) {
  EXPECT_TRUE(path_exists("models/KIND/NAME.json"));
  EXPECT_TRUE(path_exists("models/published/*.json"));
  EXPECT_FALSE(path_exists("models/none/*.json"));
  EXPECT_FALSE(path_exists("src/doctor/none.cpp"));
}

std::string cell(const std::string& row, int number) {
  std::istringstream in(row);
  std::string text;
  for (int i = 0; i <= number; ++i) std::getline(in, text, '|');
  return text;
}

/// The lines below "## CHAPTER" and "### SECTION" of docs/output.md, up to the next heading.
std::vector<std::string> section(const std::string& chapter, const std::string& name) {
  std::vector<std::string> lines;
  std::istringstream in(gdr::read_file(project + "/docs/output.md"));
  bool in_chapter = false;
  bool in_section = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) in_chapter = line == "## " + chapter, in_section = false;
    else if (line.starts_with("### ")) in_section = in_chapter && line == "### " + name;
    else if (in_section) lines.push_back(line);
  }
  EXPECT_FALSE(lines.empty()) << "docs/output.md has no " << chapter << ", " << name;
  return lines;
}

/// The members in the table for a form ("predict", "flows", "explain", or "" for check).
Names documented(const std::string& chapter, const std::string& name, const std::string& form) {
  Names names;
  for (const std::string& line : section(chapter, name)) {
    if (!line.starts_with("| `")) continue;
    const std::string forms = cell(line, 2);
    const bool all = forms.find_first_not_of(' ') == std::string::npos;
    if (!all && forms.find(form) == std::string::npos) continue;
    for (const std::string& word : code_words(cell(line, 1))) names.insert(word);
  }
  return names;
}

/// Member names of every object by the member that holds it; the document's own is "". Objects in
/// the same place have the same members.
void collect(const Value& value, const std::string& place, std::map<std::string, Names>& out) {
  if (const auto* list = value.as<Array>())
    for (const Value& item : *list) collect(item, place, out);
  const auto* object = value.as<Object>();
  if (object == nullptr) return;
  Names names;
  for (const auto& [name, member] : *object) {
    names.insert(name);
    collect(member, name, out);
  }
  const auto [known, first] = out.try_emplace(place, names);
  EXPECT_TRUE(first || known->second == names)
      << "objects in \"" << place << "\" differ in their members";
}

void compare(const std::string& arguments, int code, const std::string& chapter,
             const std::string& form, const std::map<std::string, std::string>& sections) {
  SCOPED_TRACE(arguments);
  const ToolRun run = run_tool(arguments);
  ASSERT_EQ(run.code, code) << run.out;
  std::map<std::string, Names> printed;
  collect(gdr::json::parse(run.out, "output"), "", printed);
  for (const auto& [place, names] : printed) {
    ASSERT_TRUE(sections.contains(place))
        << "docs/output.md is not asked about \"" << place << "\"";
    EXPECT_EQ(documented(chapter, sections.at(place), form), names)
        << "objects in \"" << place << "\"";
  }
  EXPECT_EQ(printed.size(), sections.size()) << "the example does not have every object";
}

TEST(OutputDocument, MembersAreThoseOfTheTool) {
  const std::string ends = " --from h0/gpu2 --to h1/gpu2 --size 64KiB --format json";
  compare("check " + one_nic + " --format json", 1, "gdr check", "",
          {{"", "the document"}, {"pairs", "pairs"}, {"best", "best"}, {"findings", "findings"}});
  const std::string chapter = "gdr predict and gdr explain";
  compare(
      "predict " + one_nic + ends + " --set iommu=translate --set maps_peer_memory=false --range",
      0, chapter, "predict",
      {{"", "the document"},
       {"results", "results, paths"},
       {"stages", "stages"},
       {"nics", "nics"},
       {"skipped", "skipped"}});
  compare("explain " + a100 + ends + " --set h0/nic2.acs=RR+DT", 0, chapter, "explain",
          {{"", "the document"},
           {"paths", "results, paths"},
           {"stages", "stages"},
           {"hops", "hops"},
           {"open", "open"}});
  compare("predict " + a100 + " --format json --flows " + project + "/examples/eight-pairs.json", 0,
          chapter, "flows",
          {{"", "the document"}, {"results", "results, paths"}, {"stages", "stages"}});
}

TEST(OutputDocument, CsvColumnsAreThoseOfTheTool) {
  std::string expected;
  for (const std::string& line : section("gdr predict and gdr explain", "CSV"))
    if (line.starts_with("`from`") || !expected.empty())
      for (const std::string& word : code_words(line))
        expected += (expected.empty() ? "" : ",") + word;
  const ToolRun run =
      run_tool("predict " + one_nic +
               " --from h0/gpu2 --to h1/gpu2 --size 64KiB --path staged --format csv");
  EXPECT_EQ(run.out.substr(0, run.out.find('\n')), expected);
}

/// Words of the table below "### NAME" of the chapter Words.
Names words(const std::string& name) {
  Names names;
  for (const std::string& line : section("Words", name))
    if (line.starts_with("| `")) names.insert(code_words(line).front());
  return names;
}

/// to_string() of the enumerators from the first to `last`.
template <typename Enum>
Names words_to(Enum last) {
  Names names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.emplace(to_string(static_cast<Enum>(i)));
  return names;
}

TEST(OutputDocument, WordsAreThoseOfTheCode) {
  EXPECT_EQ(words("route"), words_to(gdr::PairRoute::none));
  EXPECT_EQ(words("kernel_p2pdma"), words_to(gdr::KernelP2pdma::unknown));
  EXPECT_EQ(words("verdict"), words_to(gdr::PairAnswer::unknown));
  EXPECT_EQ(words("severity"), words_to(gdr::Severity::note));
  EXPECT_EQ(words("mover"), words_to(gdr::Mover::gpu_thread));
  // A device with itself, and devices of two hosts, are not pairs.
  Names distances = words_to(gdr::Distance::none);
  for (const gdr::Distance other : {gdr::Distance::self, gdr::Distance::none})
    distances.erase(std::string(to_string(other)));
  distances.insert({"NV#", "XGMI#"});
  EXPECT_EQ(words("distance"), distances);
  // Paths as wired use neither relays (PXN) nor the network.
  Names nccl = words_to(gdr::nccl::PathType::dis);
  for (const char* other : {"LOC", "PXN", "NET"}) nccl.erase(other);
  EXPECT_EQ(words("nccl_distance"), nccl);
}

TEST(OutputDocument, ExitCodesAreThoseOfTheTool) {
  const std::string ends = " --from h0/gpu2 --to h1/gpu2 --size 64KiB";
  EXPECT_EQ(run_tool("check " + a100).code, 0);
  EXPECT_EQ(run_tool("check " + a100 + " --set nonsense").code, 2);
  EXPECT_EQ(run_tool("predict " + one_nic + ends +
                     " --set iommu=translate --set maps_peer_memory=false --path gdr,staged")
                .code,
            1);
  EXPECT_EQ(run_tool("predict " + one_nic + ends + " --path p2p").code, 2);
  EXPECT_EQ(run_tool("explain " + one_nic + ends +
                     " --set iommu=translate --set maps_peer_memory=false --path gdr")
                .code,
            2);
}

/// The table of required members in docs/topology.md, against the schema (which another test holds
/// to the loader).
TEST(TopologyDocument, RequiredMembersAreTheSchemas) {
  const Value schema = gdr::json::parse_file(project + "/docs/topology.schema.json");
  const std::map<std::string, std::vector<std::string>> types{
      {"file", {""}},         {"host", {"inline_host", "server_host"}},
      {"socket", {"socket"}}, {"NUMA node", {"numa_node"}},
      {"device", {"gpu"}},    {"NVLink", {"nvlink"}},
      {"fabric", {"fabric"}}};
  const std::string text = gdr::read_file(project + "/docs/topology.md");
  for (const auto& [word, definitions] : types) {
    const std::size_t row = text.find("\n| " + word + " | ");
    ASSERT_NE(row, std::string::npos) << word;
    std::string line = text.substr(row + 1, text.find('\n', row + 1) - row - 1);
    line = line.substr(
        0, line.find(';') == std::string::npos || word == "host" ? line.size() : line.find(';'));
    const auto in_row = code_words(line);
    Names required;
    for (const std::string& definition : definitions) {
      const Value& type = definition.empty() ? schema : *schema.find("$defs")->find(definition);
      for (const Value& name : *type.find("required")->as<Array>())
        required.insert(*name.as<std::string>());
    }
    EXPECT_EQ(Names(in_row.begin(), in_row.end()), required) << word;
  }
}

}  // namespace
