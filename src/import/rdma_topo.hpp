#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/json.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// The list that rdma-core's `rdma_topo dump` writes: an object for each PCI function with
/// realpath, config (zlib, base64), modalias, iommu_group, numa_node, subsystems. Throws InputError
/// naming `name` and the entry.
Machine read_rdma_topo(const json::Value& document, const std::string& name);

/// Of a zlib stream; what it unpacks to is at most `most` bytes, else InputError.
std::vector<std::uint8_t> inflate(const std::vector<std::uint8_t>& packed, std::size_t most,
                                  const std::string& place);
std::vector<std::uint8_t> deflate(const std::vector<std::uint8_t>& plain);

}  // namespace gdr::observed
