#include "src/hardware/pcie.hpp"

#include <algorithm>

#include "src/common/check.hpp"

namespace gdr {
namespace {

/// Headers of the TLPs that carry `transfer` bytes in pieces of `piece`, per payload byte.
double header_share(Bytes transfer, Bytes piece, Bytes header) {
  check(transfer.count > 0 && piece.count > 0, "no bytes to carry");
  const std::uint64_t tlps = (transfer.count + piece.count - 1) / piece.count;
  return static_cast<double>(tlps * header.count) / transfer.as_double();
}

}  // namespace

Bandwidth tlp_bandwidth(const PcieModel& generation, int width) {
  const double lane_bits = static_cast<double>(generation.transfer_rate_mtps.value) * 1e6;
  const double code = static_cast<double>(generation.code_payload.value) /
                      static_cast<double>(generation.code_line.value);
  const double tlp_share = 1 - static_cast<double>(generation.dllp_share_permille.value) / 1000;
  return {lane_bits * width * code / 8 * tlp_share};
}

PcieTraffic write_traffic(const PcieModel& generation, Bytes transfer, Bytes max_payload) {
  return {1 + header_share(transfer, max_payload,
                           generation.write_header.value + generation.tlp_framing.value)};
}

PcieTraffic completion_traffic(const PcieModel& generation, Bytes transfer, Bytes completion_size) {
  return {1 + header_share(transfer, completion_size,
                           generation.completion_header.value + generation.tlp_framing.value)};
}

PcieTraffic request_traffic(const PcieModel& generation, Bytes transfer, Bytes max_read_request) {
  return {header_share(transfer, max_read_request,
                       generation.read_header.value + generation.tlp_framing.value)};
}

Bandwidth read_window(Bytes outstanding, Duration round_trip) { return outstanding / round_trip; }

Bandwidth credit_window(Bytes credit, Duration round_trip) { return credit / round_trip; }

}  // namespace gdr
