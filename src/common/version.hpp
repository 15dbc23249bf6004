#pragma once

#include <string_view>

namespace gdr {

/// Compares versions by their numbers: "5.4.0-150-generic" is before "5.12". Missing numbers are 0.
bool version_before(std::string_view version, std::string_view other);

}  // namespace gdr
