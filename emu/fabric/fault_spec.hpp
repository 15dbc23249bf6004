#pragma once

#include <string_view>
#include <vector>

#include "emu/fabric/options.hpp"

namespace gdr::fabric {

/// Sets link options from a text such as "h0/nic0:loss=1%,delay=5us;h1/*.tx:down-after=1000";
/// docs/emulation.md has the grammar. Later items win. Throws InputError that says where, what was
/// found and what is allowed, and leaves `ports` unchanged.
void apply_faults(std::string_view spec, std::vector<PortOptions>& ports);

}  // namespace gdr::fabric
