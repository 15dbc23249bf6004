#include "src/cli/help.hpp"

#include <sstream>

#include "src/report/output.hpp"

namespace gdr::cli {

using namespace report;
namespace {

constexpr std::size_t terminal_width = 80;
constexpr std::size_t description_column = 24;

}  // namespace

HelpFormatter::HelpFormatter() { column_width(description_column); }

// CLI11 puts text after a line break below the description's first line.
std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(option->get_description(), 0, terminal_width - description_column);
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(CLI::Formatter::make_description(app), 0, terminal_width);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(
      out, command->get_name(),
      wrapped(command->get_description(), 0, terminal_width - description_column),
      description_column);
  return out.str();
}

}  // namespace gdr::cli
