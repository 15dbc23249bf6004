#pragma once

#include "src/common/json.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr {

/// Edits a topology document as the setting says, before it is read, so that a wrong value is
/// refused by the reader like any other. KEY is FIELD (every host and device that can have it),
/// HOST.FIELD or HOST/DEVICE.FIELD; "acs" takes on, off or bits joined by '+' or ','. Throws
/// InputError when the key names nothing.
void apply_setting(json::Value& document, const Setting& setting);

}  // namespace gdr
