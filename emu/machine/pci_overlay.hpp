#pragma once

#include <string>

#include "emu/machine/pcie_tree.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::emu {

/// Properties of a host's PCI functions that QEMU cannot provide: IDs and classes, links, payload
/// and read request sizes, relaxed ordering (on for NICs, unless the topology denies it), ACS of
/// ports, ATS, BAR sizes, as lines for emu/module/gdr_pci_overlay.c (which documents the format).
/// What neither the topology nor a model that it names states is left as QEMU has it. `hardware` is
/// that of the whole topology.
std::string pci_overlay(const Hardware& hardware, std::size_t host, const PcieTree& tree);

/// QEMU's properties that make its processor answer CPUID as the host's model does
/// ("vendor=GenuineIntel,family=6,..."); empty when the host names no model, or one that is not
/// x86.
std::string processor_identity(const Host& host, const ModelLibrary& models);

/// The kernel's command line options about the IOMMU on such a host; empty when the topology does
/// not state it.
std::string iommu_parameters(const Host& host, const ModelLibrary& models);

}  // namespace gdr::emu
