#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include "src/cli/commands.hpp"
#include "src/cli/help.hpp"
#include "src/common/error.hpp"

namespace {

constexpr int exit_input_error = 2;
constexpr int exit_bug = 3;

constexpr const char* examples =
    "Examples:\n"
    "  gdr show topologies/servers/dgx-a100.json\n"
    "  nvidia-smi topo -m | gdr check -\n"
    "  gdr import system.xml system.xml -o two-hosts.json\n"
    "  gdr check two-hosts.json\n"
    "  gdr predict two-hosts.json --from h0/gpu0 --to h1/gpu0 --size 8B,1MiB\n"
    "  gdr emulate two-hosts.json -- ibv_devices\n"
    "\n"
    "Models: $GDR_DATA_DIR/models; without that variable those of ../share/gdr beside\n"
    "the tool, or of the source tree it was built in.\n"
    "\n"
    "Exit codes: 0 fine, 1 the answer is no, 2 wrong input, 3 a bug of this program.";

/// If the caller closed one of the descriptors 0 to 2, the next file opened would get it, and
/// output would go into that file. Opening it for reading only makes printing fail instead.
void keep_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) (void)open("/dev/null", O_RDONLY);
}

/// Prints a failure as one line on standard error.
int report(std::string text, int code) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::fprintf(stderr, "gdr: %s\n", text.c_str());
  return code;
}

/// Output that does not reach the disk is a failure, too.
int flush_output(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return report(fmt::format("standard output: cannot write to it: {}",
                            std::strerror(errno != 0 ? errno : EIO)),
                exit_input_error);
}

void add_commands(CLI::App& app, gdr::cli::Context& context) {
  gdr::cli::add_show(app, context);
  gdr::cli::add_check(app, context);
  gdr::cli::add_predict(app, context);
  gdr::cli::add_explain(app, context);
  gdr::cli::add_validate(app, context);
  gdr::cli::add_import(app, context);
  gdr::cli::add_export(app, context);
  gdr::cli::add_verify(app, context);
  gdr::cli::add_compare(app, context);
  gdr::cli::add_nccl(app, context);
  gdr::cli::add_doctor(app, context);
  gdr::cli::add_capture(app, context);
  gdr::cli::add_emulate(app, context);
  gdr::cli::add_transfer(app, context);
}

int parse_and_run(CLI::App& app, gdr::cli::Context& context, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      return report("a subcommand is missing; \"gdr --help\" lists them", exit_input_error);
    return flush_output(context.exit_code);
  } catch (const CLI::ParseError& error) {
    // Help and version arrive as exceptions, too; those have exit code 0.
    if (error.get_exit_code() == 0) return flush_output(app.exit(error));
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "gdr" : "gdr " + chosen.front()->get_name();
    return report(fmt::format("{}; see \"{} --help\"", error.what(), command), exit_input_error);
  }
}

int run(int argc, char** argv) {
  CLI::App app(
      "gdr: which GPU and NIC pairs can use GPUDirect RDMA in a topology, by which path, and how "
      "fast",
      "gdr");
  app.set_version_flag("--version", std::string("gdr ") + GDR_VERSION);
  app.formatter(std::make_shared<gdr::cli::HelpFormatter>());  // the subcommands take it over
  app.footer(examples);
  app.require_subcommand(0, 1);  // a wrong word is then reported as such
  // The models are looked for when a subcommand is about to run: --help works without them.
  std::optional<gdr::ModelLibrary> models;
  gdr::cli::Context context;
  app.parse_complete_callback(
      [&] { context.models = &models.emplace(gdr::data_folder(GDR_SOURCE_DATA_DIR) + "/models"); });
  add_commands(app, context);
  return parse_and_run(app, context, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  try {
    return run(argc, argv);
  } catch (const gdr::InputError& error) {
    return report(error.what(), exit_input_error);
  } catch (const std::system_error& error) {
    return report(error.what(), exit_input_error);
  } catch (const std::bad_alloc&) {
    return report("out of memory", exit_bug);
  } catch (const std::exception& error) {
    return report(
        fmt::format("internal error: {}; please report this with the command and its input",
                    error.what()),
        exit_bug);
  }
}
