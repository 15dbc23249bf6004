#pragma once

#include <map>
#include <string>

#include "src/common/json.hpp"
#include "src/import/captured_files.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// What `gdr capture` gathered: files of /sys and /proc, and the output of commands.
struct Capture {
  CapturedFiles files;
  std::map<std::string, std::string> commands;  ///< output by command line ("nvidia-smi topo -m")
  std::map<std::string, std::string> missing;   ///< what could not be read, and why
  bool root = false;                            ///< gathered by root

  /// Describes the machine from the files and command outputs that importers understand.
  [[nodiscard]] Machine machine() const;
};

/// {"format": 1, "captured": {...}}; binary contents are base64. Throws InputError that names
/// `name` and the place.
Capture read_capture(const json::Value& document, const std::string& name);
json::Value to_json(const Capture& capture);

}  // namespace gdr::observed
