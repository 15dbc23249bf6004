#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/common/json_reader.hpp"

namespace gdr {

/// The Access Control Services that a downstream port has enabled, with the bits of its control
/// register (PCI Express Base Specification): SV 0, TB 1, RR 2, CR 3, UF 4, EC 5, DT 6.
struct Acs {
  std::uint16_t bits = 0;

  static constexpr std::uint16_t source_validation = 1U << 0U;
  static constexpr std::uint16_t translation_blocking = 1U << 1U;
  static constexpr std::uint16_t request_redirect = 1U << 2U;
  static constexpr std::uint16_t completion_redirect = 1U << 3U;
  static constexpr std::uint16_t upstream_forwarding = 1U << 4U;
  static constexpr std::uint16_t egress_control = 1U << 5U;
  static constexpr std::uint16_t direct_translated = 1U << 6U;

  [[nodiscard]] bool has(std::uint16_t bit) const { return (bits & bit) != 0; }
  /// True when peer requests or completions are sent up to the root port: RR, CR or EC. Source
  /// validation is harmless.
  [[nodiscard]] bool redirects() const {
    return has(request_redirect | completion_redirect | egress_control);
  }
  bool operator==(const Acs&) const = default;
};

/// "SV+RR+CR+UF", or "none".
std::string to_string(Acs acs);
json::Value to_json(Acs acs);
/// Reads a list of SV, TB, RR, CR, UF, EC, DT.
Acs read_acs(const json::Node& node);

}  // namespace gdr
