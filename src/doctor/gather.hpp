#pragma once

#include <string>

#include "src/import/capture_json.hpp"

namespace gdr::doctor {

/// Reads /sys and /proc below `root` and, where that is "/", runs the commands whose output the
/// rules use and that are there. `anonymous` replaces names, serial numbers, addresses and GUIDs,
/// alike everywhere, so that what was equal stays equal.
observed::Capture gather(const std::string& root, bool anonymous);

/// The replacement, for any capture.
void make_anonymous(observed::Capture& capture, const std::string& host_name);

}  // namespace gdr::doctor
