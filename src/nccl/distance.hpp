#pragma once

#include <map>
#include <string>
#include <utility>

#include "src/hardware/hardware.hpp"
#include "src/nccl/rules.hpp"

namespace gdr {

/// What the host's NCCL makes of its pairs, found once for all of them. The words are nccl::view's;
/// where that has none (NCCL older than 2.12, hosts with AMD GPUs, which run RCCL, and drives) they
/// follow from the PCIe tree alone.
class NcclDistances {
 public:
  /// Of the only host of a topology. `hardware` and its graph must outlive this.
  explicit NcclDistances(const Hardware& hardware);

  /// As wired, before a relay GPU (PXN) stands in: NVL, PIX, PXB, PHB (one NUMA node), SYS...
  [[nodiscard]] nccl::PathType type(DeviceId a, DeviceId b) const;
  /// GPUDirect RDMA between the two is off, and a higher NCCL_NET_GDR_LEVEL alone would switch it
  /// on.
  [[nodiscard]] bool level_too_low(DeviceId gpu, DeviceId nic) const;
  /// The host's version, where it is newer than what is known: it is taken to be the newest known.
  /// Else empty.
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
  std::map<DevicePair, bool> too_low_;  ///< of GPU and NIC
};

}  // namespace gdr
