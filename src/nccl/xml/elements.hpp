#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/xml_tree.hpp"
#include "src/topology/topology.hpp"

namespace gdr::nccl {

// How elements are kept in Topology: each device, NUMA node and system has a list, first its own
// element (pci, nic, cpu, system), then those below it in file order that are no devices
// themselves. Where an element belongs is known from its tag: net below the last nic, nvlink, xgmi
// and c2c below the last gpu, others right below the first. One that stands elsewhere has a path
// for a tag
// ("/gpu/spare/part"). "*" is the place of a child device; children without one come last.

/// The tag that marks the place of a child device.
inline constexpr std::string_view place_of_child = "*";

/// Keeps `element` and all below it that `is_device` does not claim (asked for direct children
/// only).
std::vector<NcclElement> keep(const xml::Element& element,
                              const std::function<bool(const xml::Element&)>& is_device);

/// The tree of a list with its devices put back in their places.
xml::Element restore(const std::vector<NcclElement>& elements, std::vector<xml::Element> devices);

/// The value of an attribute, or nullptr.
const std::string* attribute(const NcclElement& element, std::string_view name);
/// Sets an attribute; one that is there keeps its place.
void set_attribute(NcclElement& element, std::string_view name, std::string value);
/// The first element with this tag, or nullptr.
const NcclElement* find(const std::vector<NcclElement>& elements, std::string_view tag);
/// True for nvlink, xgmi and c2c.
bool is_gpu_link(std::string_view tag);

/// An integer attribute, decimal or 0x hexadecimal; nullopt when absent or no number.
std::optional<std::int64_t> integer_attribute(const NcclElement& element, std::string_view name);

}  // namespace gdr::nccl
