#pragma once

#include <map>
#include <string>

#include "src/common/json.hpp"
#include "src/import/captured_files.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// What `gdr capture` gathered: files of /sys and /proc, and the output of commands by their
/// command line.
struct Capture {
  CapturedFiles files;
  std::map<std::string, std::string> commands;  ///< "nvidia-smi topo -m": what it printed
  std::map<std::string, std::string> missing;   ///< what could not be read: why, or who may
  bool root = false;                            ///< taken as root

  /// What the files and the commands' outputs that importers know say of the machine.
  [[nodiscard]] Machine machine() const;
};

/// {"format": 1, "captured": {...}}; binary contents are base64. Throws InputError naming `name`
/// and the place.
Capture read_capture(const json::Value& document, const std::string& name);
json::Value to_json(const Capture& capture);

}  // namespace gdr::observed
