#pragma once

#include <string>

#include "emu/machine/pcie_tree.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::emu {

/// What a host's PCI functions shall look like and QEMU cannot make them look like: IDs and
/// classes, links, payload and read request sizes, relaxed ordering (of NICs on, unless the
/// topology says no), ACS of ports, ATS, BAR sizes, as lines that emu/module/gdr_pci_overlay.c
/// takes (the format is told there). What neither the topology nor a model that it names says is
/// left as QEMU has it. `hardware` is of the whole topology.
std::string pci_overlay(const Hardware& hardware, std::size_t host, const PcieTree& tree);

/// QEMU's properties that make its processor answer CPUID as the host's model does
/// ("vendor=GenuineIntel,family=6,..."); empty when the host names no model, or one that is no x86.
std::string processor_identity(const Host& host, const ModelLibrary& models);

/// What the kernel's command line says of the IOMMU on such a host; empty when the topology does
/// not say.
std::string iommu_parameters(const Host& host, const ModelLibrary& models);

}  // namespace gdr::emu
