#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/common/json.hpp"
#include "src/import/observed.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/topology/topology.hpp"

namespace gdr {

class ModelLibrary;

/// What a text looks like, by its content.
enum class InputKind {
  topology,  ///< a topology file of this project
  capture,   ///< what `gdr capture` wrote
  nccl_xml,
  hwloc,
  rdma_topo,
  archive,  ///< a tar archive, compressed or not
  text,     ///< what tools printed: lspci, nvidia-smi topo -m, lscpu...
};

/// Throws InputError for XML of another kind, for JSON of another kind and for an empty text,
/// saying what it is.
InputKind recognise(const NamedText& input);

/// Listings of one machine as one host, or NCCL's files as one host each, or topologies of this
/// project joined (join.hpp). Kinds are recognised by content. Several listings are merged; where
/// they contradict each other a remark says so. `models` gives devices their models by PCI ids
/// (nullptr: none). Throws InputError naming the input: nothing in it that tells of a machine, or
/// kinds that do not go together.
Topology import_machine(const std::vector<NamedText>& inputs, const ModelLibrary* models = nullptr);
/// The same with files, folders that hold a copy of /sys, "/" for this machine and "-" for standard
/// input.
Topology import_machine(const std::vector<std::string>& paths,
                        const ModelLibrary* models = nullptr);

/// What the inputs say, before it becomes a topology; no NCCL files and no topologies among them.
observed::Machine read_machine(const std::vector<NamedText>& inputs);

/// Output of a tool that tells nothing of a machine, and the command that reads it.
struct ForAnotherCommand {
  std::string what;     ///< "a log of NCCL"
  std::string command;  ///< "gdr nccl --log"; the file follows
  bool operator==(const ForAnotherCommand&) const = default;
};
/// By words that only such output has; one for each command, since NCCL's log and what nccl-tests
/// print often are in one file.
std::vector<ForAnotherCommand> for_other_commands(std::string_view text);

/// A file; for "-" standard input, at most 64 MiB.
NamedText read_input(const std::string& path);

}  // namespace gdr
