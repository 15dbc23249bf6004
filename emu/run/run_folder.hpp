#pragma once

#include <string>

#include "src/common/unique_fd.hpp"

namespace gdr::emu {

/// A folder for the files of one run, removed with its owner. A run that was killed leaves its
/// folder behind; the next run of the same user removes it (a folder in use is locked).
class RunFolder {
 public:
  /// Created below /dev/shm if that is writable, else below $TMPDIR or /tmp. Throws
  /// std::system_error.
  RunFolder();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd lock_;
};

}  // namespace gdr::emu
