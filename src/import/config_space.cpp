#include "src/import/config_space.hpp"

#include <fmt/format.h>

#include <array>

namespace gdr::observed {
namespace {

class Space {
 public:
  explicit Space(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] bool holds(std::size_t at, std::size_t count) const {
    return at + count <= bytes_.size();
  }
  [[nodiscard]] unsigned byte(std::size_t at) const { return holds(at, 1) ? bytes_[at] : 0; }
  [[nodiscard]] unsigned word(std::size_t at) const { return byte(at) | byte(at + 1) << 8U; }
  [[nodiscard]] unsigned dword(std::size_t at) const { return word(at) | word(at + 2) << 16U; }

  /// Offset of a capability in the list that starts at 0x34; 0 if it is missing.
  [[nodiscard]] std::size_t capability(unsigned id) const {
    constexpr unsigned has_list = 1U << 4U;
    if ((word(0x06) & has_list) == 0) return 0;
    std::size_t at = byte(0x34) & 0xfcU;
    for (int steps = 0; steps < 64 && at >= 0x40 && holds(at, 4); ++steps) {
      if (byte(at) == id) return at;
      at = byte(at + 1) & 0xfcU;
    }
    return 0;
  }
  /// Offset of an extended capability; 0 if it is missing.
  [[nodiscard]] std::size_t extended(unsigned id) const {
    std::size_t at = 0x100;
    for (int steps = 0; steps < 1024 && at >= 0x100 && holds(at, 8); ++steps) {
      const unsigned header = dword(at);
      if (header == 0 || header == 0xffffffffU) return 0;
      if ((header & 0xffffU) == id) return at;
      at = (header >> 20U) & 0xffcU;
    }
    return 0;
  }

 private:
  const std::vector<std::uint8_t>& bytes_;
};

std::optional<PcieLink> link_of(unsigned speed, unsigned width) {
  const bool good_width = width == 1 || width == 2 || width == 4 || width == 8 || width == 12 ||
                          width == 16 || width == 32;
  if (speed < 1 || speed > 6 || !good_width) return std::nullopt;
  return PcieLink{static_cast<int>(speed), static_cast<int>(width)};
}

void read_express(const Space& space, std::size_t at, Function& function) {
  constexpr std::array<unsigned, 6> known{0, 1, 4, 5, 6, 9};
  const unsigned type = (space.word(at + 0x02) >> 4U) & 0xfU;
  for (const unsigned one : known)
    if (type == one) function.port_type = static_cast<PortType>(type);
  if (!space.holds(at + 0x08, 2)) return;
  const unsigned control = space.word(at + 0x08);
  constexpr unsigned largest = 5;  // 4096 bytes
  if (const unsigned payload = (control >> 5U) & 7U; payload <= largest)
    function.max_payload = Bytes{128ULL << payload};
  if (const unsigned request = (control >> 12U) & 7U; request <= largest)
    function.max_read_request = Bytes{128ULL << request};
  function.relaxed_ordering = ((control >> 4U) & 1U) != 0;
  if (type == 9 || !space.holds(at + 0x12, 2))
    return;  // an endpoint inside the root complex has no link
  const unsigned capability = space.dword(at + 0x0c);
  const unsigned status = space.word(at + 0x12);
  function.link_capability = link_of(capability & 0xfU, (capability >> 4U) & 0x3fU);
  function.link = link_of(status & 0xfU, (status >> 4U) & 0x3fU);
}

}  // namespace

void read_config_space(const std::vector<std::uint8_t>& bytes, Function& function) {
  const Space space(bytes);
  if (!space.holds(0, 64) || space.word(0) == 0xffffU || space.word(0) == 0) return;
  function.pci_id = fmt::format("{:04x}:{:04x}", space.word(0), space.word(2));
  function.pci_class = space.dword(0x08) >> 8U;
  const unsigned header = space.byte(0x0e) & 0x7fU;
  if (header == 1) {
    function.secondary = static_cast<int>(space.byte(0x19));
    function.subordinate = static_cast<int>(space.byte(0x1a));
  }
  if (!space.holds(0, 256)) {
    function.hidden = true;  // an ordinary user sees 64 bytes, without capabilities
    return;
  }
  if (const std::size_t express = space.capability(0x10); express != 0)
    read_express(space, express, function);
  if (!space.holds(0, 4096)) return;
  constexpr unsigned access_control = 0x000d;
  constexpr unsigned translation = 0x000f;
  if (const std::size_t acs = space.extended(access_control); acs != 0 && space.holds(acs + 6, 2))
    function.acs = Acs{static_cast<std::uint16_t>(space.word(acs + 6) & 0x7fU)};
  else function.no_acs = true;
  if (const std::size_t ats = space.extended(translation); ats != 0 && space.holds(ats + 6, 2))
    function.ats = (space.word(ats + 6) >> 15U) != 0;
}

std::vector<std::uint8_t> parse_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  int high = -1;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      if (high >= 0) return {};
      continue;
    }
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return {};
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<std::uint8_t>(high * 16 + digit));
      high = -1;
    }
  }
  return high < 0 ? bytes : std::vector<std::uint8_t>();
}

}  // namespace gdr::observed
