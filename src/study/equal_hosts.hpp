#pragma once

#include "src/catalog/model_library.hpp"
#include "src/topology/topology.hpp"

namespace gdr::study {

/// The first host of a topology and an equal one behind the topology's fabric. Without a fabric it
/// is InfiniBand, or RoCE where no NIC of the host speaks InfiniBand: by its link layer where the
/// file says it, else by its model.
Topology with_equal_host(const Topology& topology, const ModelLibrary& models);

}  // namespace gdr::study
