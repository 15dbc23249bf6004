#pragma once

#include <string>
#include <vector>

#include "src/datapath/data_path.hpp"
#include "src/topology/topology_json.hpp"

namespace CLI {
class App;
}

namespace gdr::report {}

namespace gdr::cli {

using namespace report;

/// The options that predict and explain share: which topology, between what, how.
struct TransferOptions {
  std::string topology;
  std::vector<std::string> settings;
  std::string from;
  std::string to;
  std::string path = "all";
  std::string operation = "write";
  std::string sizes;
  std::string via;
  std::string memory = "gpu";
  std::string initiator = "cpu";
  std::string window;
  std::string work_request;
  bool inlined = false;
  bool pageable = false;
  std::string format = "text";
};

/// Adds --set, --from, --to, --path, --operation, --size, --via, --memory, --initiator,
/// --work-request, --inline, --pageable, --window and --format.
void add_transfer_options(CLI::App& command, TransferOptions& options,
                          const std::vector<std::string>& formats, bool ends_required);

/// The topology with the settings applied.
Topology load(const TransferOptions& options, const ModelLibrary& models);

std::vector<Bytes> parse_sizes(const std::string& text);

/// One transfer per path and size, path by path. Paths named one by one must exist; with "all",
/// those that make sense.
std::vector<Transfer> transfers_of(const Graph& graph, const TransferOptions& options);

}  // namespace gdr::cli
