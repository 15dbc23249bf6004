#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads what people paste along with a listing, line by line: lscpu, numactl --hardware, the
/// kernel's command line (or GRUB's), lsmod, uname, the heads of nvidia-smi and
/// /proc/driver/nvidia/version, settings NCCL_...=...
class HostFactsReader {
 public:
  /// True when the line has a fact.
  bool line(std::string_view text);
  Machine take();

 private:
  bool processor(std::string_view text);
  bool kernel(std::string_view text);
  bool modules(std::string_view text);
  bool nvidia(std::string_view text);

  Machine machine_;
  bool lsmod_ =
      false;  ///< the head of lsmod's table was seen: modules that it does not list are not loaded
  bool asked_uname_ = false;
};

/// The IOMMU mode that a kernel command line sets; nullopt if it sets none.
std::optional<IommuMode> iommu_of_command_line(std::string_view text);

}  // namespace gdr::observed
