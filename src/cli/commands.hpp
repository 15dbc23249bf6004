#pragma once

#include <functional>

#include "src/catalog/model_library.hpp"

namespace CLI {
class App;
}

namespace gdr::report {}

namespace gdr::cli {

using namespace report;  // what commands print with

/// What main passes to every subcommand: the models, and the place for the exit code.
struct Context {
  const ModelLibrary* models = nullptr;
  int exit_code = 0;
};

// Each adds one subcommand with its options, help text and an example; running it is its callback.
// Bad input is thrown as InputError, which main prints as one line on stderr with exit code 2.
void add_show(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_predict(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_validate(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_nccl(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_capture(CLI::App& app, Context& context);
void add_emulate(CLI::App& app, Context& context);
void add_transfer(CLI::App& app, Context& context);

}  // namespace gdr::cli
