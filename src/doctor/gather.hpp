#pragma once

#include <string>

#include "src/import/capture_json.hpp"

namespace gdr::doctor {

/// Reads /sys and /proc below `root` and, if that is "/", runs the installed commands whose output
/// the rules use. `anonymous` replaces names, serial numbers, addresses and GUIDs consistently:
/// equal values stay equal.
observed::Capture gather(const std::string& root, bool anonymous);

/// Makes any capture anonymous in the same manner.
void make_anonymous(observed::Capture& capture, const std::string& host_name);

}  // namespace gdr::doctor
