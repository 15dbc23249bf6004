#pragma once

#include <optional>
#include <string>

#include "src/common/units.hpp"

namespace gdr::agreement {

/// Payload that crossed one end of a port of the fabric in one direction, by purpose. Each byte
/// counts once; repeated bytes count separately.
struct WireBytes {
  Bytes written;  ///< of RDMA writes
  Bytes sent;     ///< of RDMA sends: the transport's control
  Bytes read;     ///< data of RDMA reads, in their responses
  Bytes written_again;
  Bytes sent_again;
  Bytes read_again;
  Bytes
      stream;  ///< TCP: of frames that carry data, and of connections that are not the transport's
  Bytes stream_control;  ///< TCP: greetings, headers, control frames
  [[nodiscard]] Bytes data() const { return written + read + stream; }
  [[nodiscard]] Bytes again() const { return written_again + sent_again + read_again; }
  bool operator==(const WireBytes&) const = default;
};
WireBytes operator+(const WireBytes& a, const WireBytes& b);
/// The increase since `before`.
WireBytes operator-(const WireBytes& now, const WireBytes& before);
/// For the user's own program: its sends carry data, and its TCP sets up connections.
WireBytes with_sends_as_data(const WireBytes& bytes);

/// What `gdr transfer` reports that it moved: "moved_bytes" of its JSON.
struct ProcessBytes {
  Bytes copy_engine_out;
  Bytes copy_engine_in;
  Bytes copy_engine_within;
  Bytes cpu;
  Bytes rdma;
  Bytes bounce_out;
  Bytes bounce_in;
  Bytes socket_out;
  Bytes socket_in;
  bool operator==(const ProcessBytes&) const = default;
};

/// What the guest's kernel module counted (emu/module/gdr_gpu.h).
struct ModuleBytes {
  Bytes copied_out;  ///< of the transfer's GPU, by its copy engine
  Bytes copied_in;
  Bytes nic_read;     ///< by NICs, out of the GPU's memory, for packets that were new
  Bytes nic_written;  ///< by NICs, into it
  Bytes host_read;    ///< by NICs, out of memory other than GPUs', sends included; as nic_read
  Bytes host_written;
  Bytes read_again;  ///< by NICs, out of any memory but other GPUs', for packets built before
  Bytes other_gpus;  ///< all that was copied, read and written at the host's other GPUs
  bool operator==(const ModuleBytes&) const = default;
};

/// One host during one transfer.
struct SideObservation {
  std::optional<ProcessBytes> process{
      ProcessBytes{}};  ///< nullopt: the user's own program, which reports nothing
  ModuleBytes module;
  WireBytes sent;        ///< by the transfer's NIC
  WireBytes delivered;   ///< to it
  WireBytes other_nics;  ///< what the host's other NICs sent
  Bytes announced;       ///< lengths in RETHs that the NIC sent: the fabric's flows
  Bytes tcp;             ///< TCP payload that the NIC sent, new bytes: the fabric's flows
};

struct Observation {
  SideObservation from;
  SideObservation to;
};

}  // namespace gdr::agreement
