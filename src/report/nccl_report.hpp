#pragma once

#include <string>

#include "src/common/json.hpp"
#include "src/nccl/decision.hpp"
#include "src/nccl/log.hpp"

namespace gdr::report {

// `gdr nccl`: what NCCL decides on a host.
std::string to_text(const Topology& topology, std::size_t host, const nccl::Decision& decision);
json::Value to_json(const Topology& topology, std::size_t host, const nccl::Decision& decision);

// `gdr nccl --log`: what a log says.
std::string to_text(const nccl::Log& log);
json::Value to_json(const nccl::Log& log);
/// Compares the log's use of GPUDirect RDMA with the decision, by the lines about pairs of one rank
/// and net.
std::string log_comparison(const nccl::Log& log, const Topology& topology, std::size_t host,
                           const nccl::Decision& decision);

}  // namespace gdr::report
