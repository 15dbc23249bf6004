#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gdr::cli {

/// Help texts wrapped to a terminal of 80 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace gdr::cli
