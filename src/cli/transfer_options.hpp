#pragma once

#include <string>
#include <vector>

#include "src/datapath/data_path.hpp"
#include "src/topology/topology_json.hpp"
#include "src/verdict/verdict.hpp"

namespace CLI {
class App;
}

namespace gdr::cli {

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

/// One transfer a path and size, path by path. Paths named one by one must exist; with "all", those
/// that make sense.
std::vector<Transfer> transfers_of(const Graph& graph, const TransferOptions& options);

/// Gives each end that is a GPU and has no NIC chosen the one that the verdict calls its best, so
/// that predict uses what check names.
Transfer with_best_nics(const Topology& topology, const Verdict& verdict, Transfer transfer);

/// What the verdict says of the pairs that a path needs (GPU and NIC on either side for gdr, the
/// two GPUs for p2p): the worst of them, with the finding that blocks it or the names of the rules.
/// Other paths work.
struct PathVerdict {
  PairAnswer answer = PairAnswer::works;
  std::string reason;
};
PathVerdict verdict_of(const Graph& graph, const ModelLibrary& models, const Verdict& verdict,
                       const Transfer& transfer);

}  // namespace gdr::cli
