#pragma once

#include <string>
#include <vector>

#include "src/hardware/hardware.hpp"

namespace gdr::emu {

/// Lines "#refuse gpu0-nic1 REASON" for emu/module/refusals.c: the GPU-NIC pairs of a host whose
/// verdict is blocked, each with the rule that blocks it. Pairs that only lack software
/// (nvidia-peermem) are not among them: the guest's own module stands in for it. `host` is the
/// index in the topology.
std::string refused_pairs(const Topology& topology, std::size_t host, const ModelLibrary& models);

/// A fault that the user asked for: "h0/gpu0-nic1", then ",after=N" (so many registrations pass),
/// ",above=64KiB" (only larger ones are refused). HOST and the numbers may be *.
struct Refusal {
  std::string host;  ///< empty: every host
  std::string rule;  ///< as /dev/gdr-refusals takes it: gpu0-nic1,after=3
};

/// Throws InputError for a wrong form, saying what is allowed, and for a host or device that the
/// topology does not have.
Refusal parse_refusal(const std::string& text, const Topology& topology);

/// Lines "#gpu NUMBER PLACE WINDOW PEERMEM" for emu/module/fakegpu.c; `places` are those of the
/// host's devices.
std::string gpu_settings(const Hardware& hardware, std::size_t host,
                         const std::vector<std::size_t>& places);

/// Lines "#nic NUMBER SPEED WIDTH": the rate that an RDMA device shows, in the kernel's codes (enum
/// ib_port_speed, ib_port_width), the nearest to one port's rate in the topology or the model.
std::string nic_settings(const Hardware& hardware, std::size_t host);

/// Whether the host has nvidia-peermem loaded: true unless the topology denies it.
bool has_peermem(const Host& host);

}  // namespace gdr::emu
