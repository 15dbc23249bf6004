#pragma once

#include <string>
#include <utility>
#include <vector>

#include "emu/process/signals.hpp"
#include "src/topology/topology.hpp"

namespace gdr::emu {

/// What --native needs of this machine.
struct NativeMachine {
  bool has_rxe = false;  ///< the kernel has rdma_rxe, loaded or not
  bool is_root = false;
  bool has_tools = false;  ///< ip and rdma
  std::string release;     ///< of the kernel
};
NativeMachine look_at_machine();

/// One phrase for each missing thing; empty when --native can be used.
std::vector<std::string> missing_for_native(const NativeMachine& machine);

/// A host on this machine: one rxe device per NIC, each on its own dummy interface.
struct NativePlan {
  std::vector<std::vector<std::string>> set_up;
  std::vector<std::vector<std::string>> take_down;  ///< in this order; each is tried
  std::vector<std::pair<std::string, std::string>> environment;
};

/// Throws InputError when the topology has more than one host: rxe devices of one machine reach
/// each other without a fabric.
NativePlan plan_native(const Topology& topology);

/// Sets up, runs a shell command with its output going to ours, takes down. Returns its exit code,
/// or 124 on timeout. Throws InputError naming the step that failed, Interrupted.
int run_native(const NativePlan& plan, const std::string& command, Duration timeout,
               Signals& signals);

}  // namespace gdr::emu
