#pragma once

#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/topology/settings.hpp"
#include "src/topology/topology.hpp"

namespace gdr::cli {

/// A topology file, or anything that `gdr import` reads (a listing, a folder, "-" for standard
/// input), with settings applied.
Topology load_input(const std::string& path, const std::vector<Setting>& settings,
                    const ModelLibrary* models);

}  // namespace gdr::cli
