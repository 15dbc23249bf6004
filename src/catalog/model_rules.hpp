#pragma once

#include <string>
#include <string_view>

#include "src/catalog/model.hpp"
#include "src/common/units.hpp"

namespace gdr {

// What docs/models.md allows of a parameter beyond its type. Each returns an empty string, or what
// is allowed.

std::string allowed_instead(std::string_view parameter, Bytes value);
std::string allowed_instead(std::string_view parameter, Bandwidth value);
std::string allowed_instead(std::string_view parameter, Duration value);
std::string allowed_instead(std::string_view parameter, std::int64_t value);
std::string allowed_instead(std::string_view parameter, bool value);
std::string allowed_instead(std::string_view parameter, const std::string& value);

/// What a model lacks that its other parameters make necessary: the problem in a sentence, or an
/// empty string.
std::string missing_in(const CpuModel& model);

template <typename Model>
std::string missing_in(const Model& /*model*/) {
  return {};
}

/// "10de:20b0": four digits, a colon, four digits, lower-case hexadecimal.
bool is_pci_id(std::string_view text);

}  // namespace gdr
