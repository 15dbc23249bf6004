#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads what people paste beside a listing, line by line: lscpu, numactl --hardware, the kernel's
/// command line (or GRUB's), lsmod, uname, the heads of nvidia-smi and /proc/driver/nvidia/version,
/// settings NCCL_...=...
class HostFactsReader {
 public:
  /// True when the line tells a fact.
  bool line(std::string_view text);
  Machine take();

 private:
  bool processor(std::string_view text);
  bool kernel(std::string_view text);
  bool modules(std::string_view text);
  bool nvidia(std::string_view text);

  Machine machine_;
  bool lsmod_ =
      false;  ///< the head of lsmod's table was there, so that what is missing is not loaded
  bool asked_uname_ = false;
};

/// What a kernel command line makes of the IOMMU; nullopt: it does not say.
std::optional<IommuMode> iommu_of_command_line(std::string_view text);

}  // namespace gdr::observed
