#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "emu/image/accelerator.hpp"
#include "emu/image/kernel_cache.hpp"
#include "emu/process/signals.hpp"
#include "emu/run/host_commands.hpp"
#include "emu/run/session.hpp"
#include "src/catalog/model_library.hpp"
#include "src/common/json.hpp"
#include "src/topology/topology.hpp"

namespace gdr::cli {

/// The options of `gdr emulate` and its subcommands; each takes some.
struct EmulateOptions {
  std::string name;  ///< of guests that are kept
  std::string topology;
  std::vector<std::string> settings;
  emu::HostCommands commands;
  std::string timeout = "5min";
  std::string accelerator = "auto";
  std::string gpu_files;
  std::string kernel, modules;
  std::uint64_t seed = 1;
  std::vector<std::string> faults;
  std::vector<std::string> refusals;
  std::string pcap;
  std::string counters;
  bool replace = false;
  bool traffic = false;
  bool dry_run = false;
  bool probe = false;
  bool native = false;
  bool compare = false;
  // Of --compare, as predict and explain take them.
  std::vector<std::string> paths;
  std::string size = "1MiB";
  std::string operation = "write";
  std::string from, to, via;
  std::string format = "text";
  std::string transfer;  ///< more options of `gdr transfer`
};

/// "gdr: TEXT" on standard error.
void say(const std::string& text);

/// The topology, and all checks that need nothing fetched or started.
class EmulationInput {
 public:
  /// Throws InputError.
  EmulationInput(const EmulateOptions& options, const ModelLibrary& models);

  /// The guests' kernel, downloaded unless it is cached. Throws InputError, Interrupted.
  void prepare(emu::Signals& signals);
  /// The guests, with their files in `files`.
  [[nodiscard]] emu::SessionPlan plan(const std::string& files) const;

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] std::vector<std::string> hosts() const;
  /// Where commands run: the current folder.
  [[nodiscard]] const std::string& folder() const { return run_.work_folder; }

 private:
  const EmulateOptions& options_;
  const ModelLibrary& models_;
  Topology topology_;
  emu::RunPlan run_;
  fabric::FabricOptions fabric_;
};

/// --compare: runs transfers in guests and compares what was observed with the plans. Returns the
/// exit code. Throws InputError, Interrupted.
int emulate_compare(const EmulateOptions& options, const ModelLibrary& models,
                    emu::Signals& signals);

/// Prints how guests would run and what is missing, one sentence each. Returns the exit code.
int emulate_probe();

// Guests that are kept. Each returns the exit code. Throws InputError, Interrupted.
int emulate_up(const EmulateOptions& options, const ModelLibrary& models, emu::Signals& signals);
int emulate_in(const EmulateOptions& options, emu::Signals& signals);
int emulate_down(const EmulateOptions& options, emu::Signals& signals);
int emulate_list();

/// What crossed each link, from the JSON of fabric::FabricCounters.
std::string traffic_table(const json::Value& counters);

/// Writes what crossed the fabric as the options say: a table on standard error, a file.
void report_traffic(const EmulateOptions& options, const json::Value& counters);

}  // namespace gdr::cli
