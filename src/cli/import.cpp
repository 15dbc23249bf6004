#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/commands.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/import/machine.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output = "-";
};

/// "nccl-xml" in front of the files names the kind, which is recognised without it, too.
Topology read(const Options& options, const ModelLibrary* models) {
  std::vector<std::string> files = options.files;
  std::error_code error;
  const bool named = files.front() == "nccl-xml" && !std::filesystem::exists(files.front(), error);
  if (!named) return import_machine(files, models);
  files.erase(files.begin());
  if (files.empty()) throw InputError("import: a file is missing after nccl-xml");
  return import_nccl_xml(files, models);
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "import", "Make a topology of what other tools wrote or of a machine itself");
  auto options = std::make_shared<Options>();
  command
      ->add_option("files", options->files,
                   "output of lspci, nvidia-smi topo -m, lscpu..., XML of hwloc, a dump of "
                   "rdma_topo, a capture, a folder or archive of "
                   "/sys, / for this machine, - for standard input: all of one machine. Or NCCL's "
                   "topology files (NCCL_TOPO_DUMP_FILE), "
                   "one for each host. Or topologies of gdr, whose hosts are joined by a network. "
                   "The kind of each is recognised from its content")
      ->required();
  command
      ->add_option("-o,--output", options->output, "topology file to write; - is standard output")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  gdr import lspci-tv.txt topo-m.txt lscpu.txt -o machine.json\n"
      "  gdr import system.xml system.xml -o two-hosts.json\n"
      "  gdr import machine.json machine.json -o two-hosts.json");
  command->callback([options, &context] {
    const Topology topology = read(*options, context.models);
    write_file(options->output, json::dump(to_json(topology)));
    for (const Host& host : topology.hosts)
      for (const Remark& remark : host.remarks)
        if (remark.rule == "tables-are-one-machine")
          std::fprintf(stderr, "gdr: %s %s\n", remark.message.c_str(), remark.remedy.c_str());
  });
}

}  // namespace gdr::cli
