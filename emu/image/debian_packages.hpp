#pragma once

#include <string>
#include <vector>

#include "emu/process/signals.hpp"

namespace gdr::emu {

/// Fetches Debian packages with apt, without root and without installing them.
class DebianPackages {
 public:
  /// `folder` is for packages and, if the machine's package lists are missing or old, for lists of
  /// our own.
  DebianPackages(std::string folder, Signals& signals);

  /// The packages (NAME or NAME=VERSION) of the kernel behind linux-image-amd64, its headers, and
  /// busybox-static. Throws InputError when apt knows no such kernel.
  struct KernelPackages {
    std::string version;  ///< the package's: 6.1.192-3
    std::string release;  ///< what uname -r says: 6.1.0-57-amd64
    std::vector<std::string> names;
  };
  KernelPackages find_kernel();

  /// Downloads packages and unpacks them below `root`. Throws InputError with apt's reason.
  void unpack(const std::vector<std::string>& names, const std::string& root);

  /// Fetches lists of our own and uses them from then on. Throws InputError when apt fails.
  void update();

 private:
  std::string show(const std::string& package);
  std::vector<std::string> apt(const std::string& program,
                               std::vector<std::string> arguments) const;

  std::string folder_;
  Signals& signals_;
  bool own_lists_ = false;
};

/// The package of `depends` ("a (= 1), b (>= 2)") whose name starts with `prefix` and ends with
/// `suffix`; empty if there is none.
std::string dependency_named(const std::string& depends, const std::string& prefix,
                             const std::string& suffix = "");

}  // namespace gdr::emu
