#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gdr::emu {

/// What our kernel modules say in a guest ("gdr: gpu0 on nic1 refused: legacy-ioh"), found in the
/// file that QEMU writes the guest's console to.
class ConsoleLines {
 public:
  explicit ConsoleLines(std::string file) : file_(std::move(file)) {}

  /// Lines that have come since the last call, from behind "gdr: ". A file that is not there has
  /// none.
  std::vector<std::string> take();

 private:
  std::string file_;
  std::size_t at_ = 0;
};

}  // namespace gdr::emu
