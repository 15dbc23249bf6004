#pragma once

#include <string>
#include <vector>

#include "emu/process/signals.hpp"

namespace gdr::emu {

/// Debian packages by apt, without root and without installing anything.
class DebianPackages {
 public:
  /// `folder` is where apt keeps lists of its own, should the machine have none (or old ones), and
  /// where packages are put.
  DebianPackages(std::string folder, Signals& signals);

  /// Names (and versions, NAME=VERSION, where fixed) of the kernel that linux-image-amd64 stands
  /// for, its headers, and busybox-static. Throws InputError when apt knows no such kernel.
  struct KernelPackages {
    std::string version;  ///< of the package: 6.1.192-3
    std::string release;  ///< what uname -r says: 6.1.0-57-amd64
    std::vector<std::string> names;
  };
  KernelPackages find_kernel();

  /// Downloads packages and unpacks them below `root`. Throws InputError with apt's reason.
  void unpack(const std::vector<std::string>& names, const std::string& root);

  /// Fetches lists of our own, which are used from then on. Throws InputError when apt fails.
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
/// `suffix`; empty when none does.
std::string dependency_named(const std::string& depends, const std::string& prefix,
                             const std::string& suffix = "");

}  // namespace gdr::emu
