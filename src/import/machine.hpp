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

/// The kind of an input, recognised by its content.
enum class InputKind {
  topology,  ///< a topology file of this project
  capture,   ///< what `gdr capture` wrote
  nccl_xml,
  hwloc,
  rdma_topo,
  archive,  ///< a tar archive, compressed or not
  text,     ///< what tools printed: lspci, nvidia-smi topo -m, lscpu...
};

/// Throws InputError for other XML, other JSON and empty text, and says what it is.
InputKind recognise(const NamedText& input);

/// Imports listings of one machine as one host, or NCCL's files as one host each, or joins
/// topologies of this project (join.hpp). Several listings are merged, with a remark where they
/// contradict each other. `models` finds the models of devices by PCI id (nullptr: none). Throws
/// InputError that names the input if it does not describe a machine or does not go with the
/// others.
Topology import_machine(const std::vector<NamedText>& inputs, const ModelLibrary* models = nullptr);
/// The same for files, folders with a copy of /sys, "/" for this machine and "-" for standard
/// input.
Topology import_machine(const std::vector<std::string>& paths,
                        const ModelLibrary* models = nullptr);

/// Merges what the inputs say, before it becomes a topology. NCCL files and topologies are not
/// allowed.
observed::Machine read_machine(const std::vector<NamedText>& inputs);

/// Output of a tool that does not describe a machine, and the command that reads it.
struct ForAnotherCommand {
  std::string what;     ///< "a log of NCCL"
  std::string command;  ///< "gdr nccl --log"; the file follows
  bool operator==(const ForAnotherCommand&) const = default;
};
/// Finds such output by text that only it has. There can be one result per command, since the log
/// of NCCL and the output of nccl-tests are often in one file.
std::vector<ForAnotherCommand> for_other_commands(std::string_view text);

/// Reads a file, or standard input for "-"; at most 64 MiB.
NamedText read_input(const std::string& path);

}  // namespace gdr
