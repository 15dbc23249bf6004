#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/json.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads the list that rdma-core's `rdma_topo dump` writes. Each PCI function is an object with
/// realpath, config (zlib, base64), modalias, iommu_group, numa_node and subsystems. Throws
/// InputError that names `name` and the entry.
Machine read_rdma_topo(const json::Value& document, const std::string& name);

/// Decodes base64. Throws InputError on other characters.
std::vector<std::uint8_t> decode_base64(std::string_view text, const std::string& place);
std::string encode_base64(const std::vector<std::uint8_t>& bytes);
/// Unpacks a zlib stream. Throws InputError if it is damaged or unpacks to more than `most` bytes.
std::vector<std::uint8_t> inflate(const std::vector<std::uint8_t>& packed, std::size_t most,
                                  const std::string& place);
std::vector<std::uint8_t> deflate(const std::vector<std::uint8_t>& plain);

}  // namespace gdr::observed
