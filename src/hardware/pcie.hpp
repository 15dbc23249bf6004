#pragma once

#include "src/catalog/model.hpp"
#include "src/common/units.hpp"

namespace gdr {

// Arithmetic of a PCIe link, from the specification's numbers (models/pcie). All functions are
// pure.

/// Bytes on the wire around and in the payload: what a link carries for `payload` bytes of data.
struct PcieTraffic {
  double wire_bytes_per_byte = 1;  ///< >= 1: payload plus headers and framing, per payload byte
};

/// Bytes per second and direction that a link has for TLPs: lanes x rate x line code, less the
/// DLLPs' share.
Bandwidth tlp_bandwidth(const PcieModel& generation, int width);

/// Posted writes of `transfer` bytes in TLPs of at most `max_payload` (aligned).
PcieTraffic write_traffic(const PcieModel& generation, Bytes transfer, Bytes max_payload);

/// Completions of reads of `transfer` bytes that come in pieces of `completion_size`.
PcieTraffic completion_traffic(const PcieModel& generation, Bytes transfer, Bytes completion_size);

/// Read requests: bytes on the request direction per payload byte, for requests of
/// `max_read_request`.
PcieTraffic request_traffic(const PcieModel& generation, Bytes transfer, Bytes max_read_request);

/// What reads sustain with `outstanding` bytes requested and not yet received over a round trip
/// (Little's law).
Bandwidth read_window(Bytes outstanding, Duration round_trip);

/// What posted writes sustain into a port whose `credit` bytes come back after a round trip.
Bandwidth credit_window(Bytes credit, Duration round_trip);

}  // namespace gdr
