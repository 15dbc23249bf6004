#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "emu/image/kernel_cache.hpp"
#include "emu/machine/gpu_memory.hpp"
#include "emu/machine/pcie_tree.hpp"
#include "emu/machine/refusals.hpp"
#include "src/topology/topology.hpp"

namespace gdr::emu {

/// Descriptors that a QEMU inherits: the guest's three channels, the management network, then its
/// NICs.
inline constexpr int control_descriptor = 3;
inline constexpr int output_descriptor = 4;
inline constexpr int errors_descriptor = 5;
inline constexpr int management_descriptor = 6;
inline constexpr int first_nic_descriptor = 7;

/// What all guests of a run share.
struct RunPlan {
  Kernel kernel;
  bool kvm = false;
  std::string files;              ///< folder for the files of the run
  std::string gpu_files;          ///< folder for the files behind GPU memory, HOST-GPU.memory
  std::string work_folder;        ///< writable inside, under the same name; empty: none
  std::string tool;               ///< the program that commands find as gdr; empty: none
  std::vector<Refusal> refusals;  ///< faults: registrations that fail
};

/// One guest, ready to be started.
struct GuestPlan {
  std::string host;
  std::vector<std::string> qemu;  ///< the command line
  std::vector<std::string> nics;  ///< names, in the order of their descriptors
  std::string settings_file;      ///< what QEMU passes to the guest's init
  std::string settings;           ///< its content: shell variables, and lines for our modules
  std::string console_file;       ///< the guest's kernel messages
  std::string gpu_folder;         ///< where files behind GPU memory are; empty: the host has no GPU
  std::string note;               ///< what was cut to fit; may be empty
};

/// Computes plain data; nothing is started or written. Throws InputError when a host does not fit
/// into QEMU, or the hosts do not fit into one network.
GuestPlan plan_guest(const Topology& topology, std::size_t host, const RunPlan& run,
                     const ModelLibrary& models);

}  // namespace gdr::emu
