#pragma once

#include <string>
#include <vector>

#include "src/hardware/hardware.hpp"

namespace gdr::emu {

/// Lines "#refuse gpu0-nic1 REASON" for emu/module/refusals.c: the GPU-NIC pairs of a host whose
/// verdict is blocked, each with the rule that blocks it. What only software is missing for
/// (nvidia-peermem) is not among them: the guest's own module stands for it. `host` is the index in
/// the topology.
std::string refused_pairs(const Topology& topology, std::size_t host, const ModelLibrary& models);

/// A fault that the user asked for: "h0/gpu0-nic1", then ",after=N" (so many registrations pass),
/// ",above=64KiB" (only larger ones are refused). HOST and the numbers may be *.
struct Refusal {
  std::string host;  ///< empty: every host
  std::string rule;  ///< as /dev/gdr-refusals takes it: gpu0-nic1,after=3
};

/// Throws InputError that says what is allowed, and when the topology has no such host or device.
Refusal parse_refusal(const std::string& text, const Topology& topology);

/// Lines "#gpu NUMBER PLACE WINDOW PEERMEM" for emu/module/fakegpu.c; `places` are those of the
/// host's devices.
std::string gpu_settings(const Hardware& hardware, std::size_t host,
                         const std::vector<std::size_t>& places);

/// Lines "#nic NUMBER SPEED WIDTH": the rate that an RDMA device shows, in the kernel's codes (enum
/// ib_port_speed, ib_port_width), the nearest to what the topology or the model says of one port.
std::string nic_settings(const Hardware& hardware, std::size_t host);

/// The host has nvidia-peermem loaded, as far as the topology says or does not deny.
bool has_peermem(const Host& host);

}  // namespace gdr::emu
