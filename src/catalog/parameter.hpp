#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/common/pcie_link.hpp"

namespace gdr {

/// One number or fact of a component with where it comes from. `low` and `high` bracket it where
/// sources disagree.
template <typename T>
struct Parameter {
  T value{};
  std::optional<T> low;
  std::optional<T> high;
  std::string basis;      ///< the source's text, or what the estimate rests on
  bool estimate = false;  ///< true: a guess that says so
  bool operator==(const Parameter&) const = default;
};

/// What every model file carries.
struct ModelHeader {
  std::string name;
  std::string title;
  std::vector<std::string> pci_ids;  ///< "vendor:device", lower-case hexadecimal
  std::optional<PcieLink> pcie;      ///< the fastest and widest link it trains
  bool operator==(const ModelHeader&) const = default;
};

/// CPUID ranges as /proc/cpuinfo prints them.
struct CpuIdentity {
  std::string vendor;
  int family = 0;
  std::vector<int> models;
  bool operator==(const CpuIdentity&) const = default;
};

}  // namespace gdr
