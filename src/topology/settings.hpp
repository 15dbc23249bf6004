#pragma once

#include "src/common/json.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr {

/// Applies a setting to a topology document before it is read, so that the reader checks the value
/// like any other. KEY is FIELD (every host or device that can have it), HOST.FIELD or
/// HOST/DEVICE.FIELD; "acs" takes on, off or bits joined by '+' or ','. Throws InputError when the
/// key matches nothing.
void apply_setting(json::Value& document, const Setting& setting);

}  // namespace gdr
