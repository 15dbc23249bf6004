#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/xml_tree.hpp"
#include "src/topology/topology.hpp"

namespace gdr::nccl {

// How Topology stores elements: each device, NUMA node and system has a list with its own element
// (pci, nic, cpu, system) first, then the elements below it that are not devices, in file order.
// The tag implies the parent: net belongs to the last nic; nvlink, xgmi and c2c to the last gpu;
// others to the first element. An element with another parent has a path as its tag
// ("/gpu/spare/part"). "*" marks the place of a child device; children without a mark come last.

/// The tag that marks the place of a child device.
inline constexpr std::string_view place_of_child = "*";

/// Stores `element` and everything below it, except the direct children that `is_device` claims.
std::vector<NcclElement> keep(const xml::Element& element,
                              const std::function<bool(const xml::Element&)>& is_device);

/// Rebuilds the tree of a list, with the devices in their places.
xml::Element restore(const std::vector<NcclElement>& elements, std::vector<xml::Element> devices);

/// The value of an attribute, or nullptr.
const std::string* attribute(const NcclElement& element, std::string_view name);
/// Sets an attribute; an existing one keeps its place.
void set_attribute(NcclElement& element, std::string_view name, std::string value);
/// The first element with this tag, or nullptr.
const NcclElement* find(const std::vector<NcclElement>& elements, std::string_view tag);
/// True for nvlink, xgmi and c2c.
bool is_gpu_link(std::string_view tag);

/// An integer attribute, decimal or 0x hexadecimal; nullopt if it is missing or not a number.
std::optional<std::int64_t> integer_attribute(const NcclElement& element, std::string_view name);

}  // namespace gdr::nccl
