#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gdr::emu {

/// Messages of our kernel modules in a guest ("gdr: gpu0 on nic1 refused: legacy-ioh"), found in
/// the file to which QEMU writes the guest's console.
class ConsoleLines {
 public:
  explicit ConsoleLines(std::string file) : file_(std::move(file)) {}

  /// Lines since the last call, without "gdr: ". None if there is no file.
  std::vector<std::string> take();

 private:
  std::string file_;
  std::size_t at_ = 0;
};

}  // namespace gdr::emu
