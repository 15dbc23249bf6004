#pragma once

#include <string>
#include <vector>

#include "topology/model_library.hpp"
#include "topology/settings.hpp"
#include "topology/topology.hpp"

namespace gdr::cli {

/// A topology file, or anything that `gdr import` reads (a listing, a folder, "-" for standard
/// input), with settings applied.
Topology load_input(const std::string& path, const std::vector<Setting>& settings,
                    const ModelLibrary* models);

}  // namespace gdr::cli
