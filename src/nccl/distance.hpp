#pragma once

#include <map>
#include <string>
#include <utility>

#include "src/hardware/hardware.hpp"
#include "src/nccl/rules.hpp"

namespace gdr {

/// How the host's NCCL rates its pairs, computed once for all of them. The path types come from
/// nccl::view(); where it has none (NCCL before 2.12, hosts with AMD GPUs, which run RCCL, and
/// drives) they follow from the PCIe tree alone.
class NcclDistances {
 public:
  /// For the only host of a topology. `hardware` and its graph must outlive this object.
  explicit NcclDistances(const Hardware& hardware);

  /// The path as wired, without a relay GPU (PXN): NVL, PIX, PXB, PHB (one NUMA node), SYS...
  [[nodiscard]] nccl::PathType type(DeviceId a, DeviceId b) const;
  /// True if GPUDirect RDMA between the two is off and a higher NCCL_NET_GDR_LEVEL alone would
  /// enable it.
  [[nodiscard]] bool level_too_low(DeviceId gpu, DeviceId nic) const;
  /// The host's version if it is newer than every known one, whose newest then stands in for it;
  /// else empty.
  [[nodiscard]] const std::string& unknown_version() const { return unknown_version_; }
  /// "its default level PXB", "NCCL_NET_GDR_LEVEL=PIX"
  [[nodiscard]] std::string level_text() const;

 private:
  using DevicePair = std::pair<std::size_t, std::size_t>;
  void look(const ModelLibrary& models);

  const Graph& graph_;
  nccl::Settings settings_;
  std::string unknown_version_;
  nccl::PathType level_ = nccl::PathType::pxb;
  std::map<DevicePair, nccl::PathType> types_;
  std::map<DevicePair, bool> too_low_;  ///< by GPU and NIC
};

}  // namespace gdr
