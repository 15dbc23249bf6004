#pragma once

#include "src/catalog/model_library.hpp"
#include "src/topology/topology.hpp"

namespace gdr::study {

/// The first host of a topology and an equal one, joined by the topology's fabric. Where there is
/// none, the fabric is InfiniBand, or RoCE if no NIC of the host has InfiniBand, by its stated link
/// layer or else its model.
Topology with_equal_host(const Topology& topology, const ModelLibrary& models);

}  // namespace gdr::study
