#pragma once

#include <string>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

class ModelLibrary;

/// A file in memory; `name` stands for it in errors.
struct NamedText {
  std::string text;
  std::string name;
};

/// Reads topology files of NCCL (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE; version 1) and RCCL (version
/// 2). Each file is one host, or one host per host_hash if its cpus have several. Several hosts get
/// a fabric. `models` finds the models of devices and sockets by PCI ids and cpuid (nullptr: none).
/// The files' elements are stored verbatim for export. Throws InputError that names the file: not
/// XML, another kind of file, no cpu, a cpu without numaid.
Topology import_nccl_xml(const std::vector<std::string>& files,
                         const ModelLibrary* models = nullptr);
Topology import_nccl_xml(const std::vector<NamedText>& texts, const ModelLibrary* models = nullptr);

}  // namespace gdr
