#include "src/import/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/common/terminal_text.hpp"
#include "src/import/capture_json.hpp"
#include "src/import/captured_files.hpp"
#include "src/import/host_facts.hpp"
#include "src/import/hwloc.hpp"
#include "src/import/lspci.hpp"
#include "src/import/observed_host.hpp"
#include "src/import/rdma_topo.hpp"
#include "src/import/sysfs.hpp"
#include "src/import/topo_matrix.hpp"
#include "src/nccl/xml/identify.hpp"
#include "src/topology/join.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr {
namespace {

bool is_archive(std::string_view text) {
  for (const std::string_view magic : {std::string_view("BZh"), std::string_view("\x1f\x8b"),
                                       std::string_view("\xfd"
                                                        "7zXZ"),
                                       std::string_view("\x28\xb5\x2f\xfd")})
    if (text.starts_with(magic)) return true;
  return text.size() > 262 && text.substr(257, 5) == "ustar";
}

observed::Machine read_text(const NamedText& input) {
  observed::TopoMatrixReader matrix;
  observed::LspciReader lspci;
  observed::HostFactsReader facts;
  for (const std::string_view raw : text::lines(input.text)) {
    const std::string line = text::without_escapes(raw);
    if (!matrix.line(line) && !lspci.line(line)) (void)facts.line(line);
  }
  observed::Machine machine = lspci.take();
  observed::merge(machine, matrix.take());
  observed::merge(machine, facts.take());
  if (machine.formats.empty()) {
    const auto others = for_other_commands(input.text);
    throw InputError(others.empty()
                         ? fmt::format("{}: it does not describe a machine; gdr reads what lspci "
                                       "-tv, lspci -vvv and nvidia-smi topo -m print, XML of hwloc "
                                       "and NCCL, dumps of rdma_topo, folders and archives of /sys",
                                       input.name)
                         : fmt::format("{}: {}, which {} FILE reads", input.name,
                                       others.front().what, others.front().command));
  }
  return machine;
}

observed::Machine read_one(const NamedText& input) {
  switch (recognise(input)) {
    case InputKind::hwloc:
      return observed::read_hwloc(xml::parse(input.text, input.name), input.name);
    case InputKind::rdma_topo:
      return observed::read_rdma_topo(json::parse(input.text, input.name), input.name);
    case InputKind::archive:
      return observed::read_sysfs(observed::CapturedFiles::of_archive(input.text, input.name));
    case InputKind::capture:
      return observed::read_capture(json::parse(input.text, input.name), input.name).machine();
    case InputKind::text:
      return read_text(input);
    case InputKind::nccl_xml:
      throw InputError(fmt::format(
          "{}: a topology file of NCCL is complete; import it without other listings", input.name));
    case InputKind::topology:
      break;
  }
  throw InputError(
      fmt::format("{}: already a topology of gdr. To join topologies, import two or more of them "
                  "and nothing else",
                  input.name));
}

std::string topology_name(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.')
      c = '-';
  return name.empty() || name == "-" || name == "." ? "imported" : name;
}

Topology topology_of(const observed::Machine& machine, const std::string& name,
                     const ModelLibrary* models) {
  if (machine.functions.empty() && !machine.matrix && machine.loose_acs.empty())
    throw InputError(fmt::format(
        "{}: it has {} but no PCI device; add the output of lspci -tv or nvidia-smi topo -m", name,
        fmt::join(machine.formats, ", ")));
  Topology topology;
  topology.name = topology_name(name);
  topology.description = fmt::format("imported from {}", fmt::join(machine.formats, ", "));
  topology.hosts.push_back(observed::make_host(machine, nccl::Identifier(models)));
  const Host& host = topology.hosts.front();
  if (!host.devices.empty() || !host.remarks.empty()) return topology;
  const bool names = std::any_of(machine.functions.begin(), machine.functions.end(),
                                 [](const observed::Function& function) {
                                   return function.pci_class.has_value() || !function.text.empty();
                                 });
  throw InputError(fmt::format("{}: {} PCI functions, {}", name, machine.functions.size(),
                               names ? "but no GPU, NIC or drive among them"
                                     : "but their names are missing, so their kinds are unknown; "
                                       "give lspci -tv, or add lspci -nn"));
}

Topology join_files(const std::vector<NamedText>& inputs) {
  std::vector<Topology> topologies;
  std::vector<std::string> files;
  for (const NamedText& input : inputs) {
    topologies.push_back(read_topology(json::parse(input.text, input.name), input.name,
                                       std::filesystem::path(input.name).parent_path().string()));
    files.push_back(input.name);
  }
  Topology joined = join(topologies, files);
  joined.name = topology_name(inputs.front().name);
  return joined;
}

/// A user who gives two tables may mean two hosts, as with two files of NCCL.
void note_tables(const std::vector<NamedText>& inputs, observed::Machine& machine) {
  const auto has_table = [](const NamedText& input) {
    return recognise(input) == InputKind::text && read_text(input).matrix.has_value();
  };
  const auto count = std::count_if(inputs.begin(), inputs.end(), has_table);
  if (count > 1)
    machine.remarks.push_back({"tables-are-one-machine", Severity::note, "host",
                               fmt::format("{} inputs have a table of nvidia-smi topo -m, but gdr "
                                           "takes all inputs for one machine.",
                                           count),
                               "If they are from several hosts, import each one alone, then join "
                               "the files: gdr import A.json B.json."});
}

}  // namespace

std::vector<ForAnotherCommand> for_other_commands(std::string_view text) {
  struct Mark {
    std::string_view words;
    std::string_view what;
    std::string_view command;
  };
  static constexpr std::string_view verify = "gdr verify MACHINE --measured";
  static constexpr std::string_view log = "gdr nccl --log";
  static constexpr std::array<Mark, 10> marks{
      {{"BW average[", "bandwidths that ib_write_bw or the like measured", verify},
       {"t_typical[usec]", "latencies that ib_write_lat or the like measured", verify},
       {"algbw", "bandwidths that nccl-tests measured", verify},
       {"# OSU ", "figures that OSU's tests measured", verify},
       {"XferType:", "throughput that gdsio measured", verify},
       {"Bandwidth Matrix (GB/s)", "bandwidths that p2pBandwidthLatencyTest measured", verify},
       {"GPU(row)", "bandwidths that nvbandwidth measured", verify},
       {"NCCL INFO", "a log of NCCL", log},
       {"NCCL WARN", "a log of NCCL", log},
       {"GPU Direct RDMA ", "lines of a log of NCCL", log}}};
  std::vector<ForAnotherCommand> found;
  for (const Mark& mark : marks) {
    const bool known = std::any_of(found.begin(), found.end(), [&](const ForAnotherCommand& other) {
      return other.command == mark.command;
    });
    if (!known && text.find(mark.words) != std::string_view::npos)
      found.push_back({std::string(mark.what), std::string(mark.command)});
  }
  return found;
}

InputKind recognise(const NamedText& input) {
  const std::string_view text = input.text;
  if (is_archive(text)) return InputKind::archive;
  const auto start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) throw InputError(fmt::format("{}: empty", input.name));
  if (text[start] == '{') {
    const json::Value document = json::parse(text, input.name);
    if (document.find("hosts") != nullptr) return InputKind::topology;
    if (document.find("captured") != nullptr) return InputKind::capture;
    throw InputError(fmt::format(
        "{}: JSON, but neither a topology (with \"hosts\") nor a capture (with \"captured\")",
        input.name));
  }
  // A list of objects is a dump. A line of lspci's tree or of a log may begin with a bracket as
  // well.
  if (text[start] == '[' && text.find_first_not_of(" \t\r\n[", start) != std::string_view::npos &&
      text[text.find_first_not_of(" \t\r\n[", start)] == '{')
    return InputKind::rdma_topo;
  if (text[start] != '<') return InputKind::text;
  const std::string root = xml::parse(text, input.name).tag;
  if (root == "topology") return InputKind::hwloc;
  return InputKind::nccl_xml;  // whose importer explains what other XML is
}

observed::Machine read_machine(const std::vector<NamedText>& inputs) {
  observed::Machine machine;
  for (const NamedText& input : inputs) {
    try {
      observed::merge(machine, read_one(input));
    } catch (const InputError& error) {
      const std::string what = error.what();
      throw InputError(what.starts_with(input.name) ? what : input.name + ": " + what);
    }
  }
  note_tables(inputs, machine);
  return machine;
}

Topology import_machine(const std::vector<NamedText>& inputs, const ModelLibrary* models) {
  if (inputs.empty()) throw InputError("import: at least one file is needed");
  const auto all_are = [&](InputKind kind) {
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](const NamedText& input) { return recognise(input) == kind; });
  };
  if (inputs.size() > 1 && all_are(InputKind::topology)) return join_files(inputs);
  if (all_are(InputKind::nccl_xml)) return import_nccl_xml(inputs, models);
  return topology_of(read_machine(inputs), inputs.front().name, models);
}

Topology import_machine(const std::vector<std::string>& paths, const ModelLibrary* models) {
  std::vector<NamedText> texts;
  observed::Machine machine;
  std::error_code error;
  for (const std::string& path : paths) {
    if (path != "-" && std::filesystem::is_directory(path, error))
      observed::merge(machine, observed::read_sysfs(observed::CapturedFiles::of_folder(path)));
    else texts.push_back(read_input(path));
  }
  if (machine.formats.empty()) return import_machine(texts, models);
  observed::merge(machine, read_machine(texts));
  return topology_of(machine, paths.front() == "/" ? "this-machine" : paths.front(), models);
}

NamedText read_input(const std::string& path) {
  if (path != "-") return {read_file(path), path};
  constexpr std::size_t most = 64U << 20U;
  NamedText input{{}, "standard input"};
  std::string block(1U << 16U, '\0');
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), stdin)) > 0;) {
    input.text.append(block, 0, count);
    if (input.text.size() > most) throw InputError("standard input: more than 64 MiB");
  }
  return input;
}

}  // namespace gdr
