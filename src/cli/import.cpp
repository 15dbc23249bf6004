#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "topology/import/nccl_xml.hpp"
#include "topology/topology_json.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string format;
  std::vector<std::string> files;
  std::string output = "-";
};

Topology read(const Options& options, const ModelLibrary* models) {
  if (options.format == "nccl-xml") return import_nccl_xml(options.files, models);
  throw InputError(fmt::format("import: unknown format \"{}\"; there is: nccl-xml", options.format));
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("import", "Make a topology of files that other tools wrote");
  auto options = std::make_shared<Options>();
  command->add_option("format", options->format, "nccl-xml: NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE, of NCCL or RCCL")->required();
  command->add_option("files", options->files, "one for each host; the same file twice makes two equal hosts")->required();
  command->add_option("-o,--output", options->output, "topology file to write; - is standard output")->capture_default_str();
  command->footer(
      "Example:\n"
      "  gdr import nccl-xml system.xml system.xml -o two-hosts.json");
  command->callback([options, &context] { write_file(options->output, json::dump(to_json(read(*options, context.models)))); });
}

}  // namespace gdr::cli
