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

/// Topology files of NCCL (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE; version 1) and RCCL (version 2) as
/// a topology. Each file is a host; one whose cpus carry different host_hash values is a host for
/// each. Several hosts get a fabric. `models` gives devices and sockets their models by PCI ids and
/// cpuid (nullptr: none). What the files say is kept to the letter for export. Throws InputError
/// naming the file: not XML, another kind of file, no cpu, a cpu without numaid.
Topology import_nccl_xml(const std::vector<std::string>& files,
                         const ModelLibrary* models = nullptr);
Topology import_nccl_xml(const std::vector<NamedText>& texts, const ModelLibrary* models = nullptr);

}  // namespace gdr
