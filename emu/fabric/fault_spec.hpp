#pragma once

#include <string_view>
#include <vector>

#include "emu/fabric/options.hpp"

namespace gdr::fabric {

/// Sets link options as the text says: "h0/nic0:loss=1%,delay=5us;h1/*.tx:down-after=1000".
/// docs/emulation.md has the grammar. Later items win. Throws InputError that names place, found
/// and allowed; then `ports` is as before.
void apply_faults(std::string_view spec, std::vector<PortOptions>& ports);

}  // namespace gdr::fabric
