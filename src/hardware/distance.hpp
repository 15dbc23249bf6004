#pragma once

#include <string>

#include "src/hardware/graph.hpp"

namespace gdr {

/// The distance over PCIe, NVLinks ignored: a stated one (Host::distances), else that of the tree.
/// `none` between hosts.
Distance pcie_distance(const Graph& graph, DeviceId a, DeviceId b);

/// NVLinks between two GPUs of a host: the links that join them directly, or those of each to a
/// common NVSwitch. 0: none.
int nvlink_count(const Graph& graph, DeviceId a, DeviceId b);

/// What nvidia-smi prints for a GPU pair: "NV12", else the PCIe distance.
std::string smi_distance(const Graph& graph, DeviceId a, DeviceId b);

/// True for functions of one card of a host: they are below one port, and their addresses differ
/// only after the dot.
bool of_one_card(const Device& a, const Device& b);

}  // namespace gdr
