#pragma once

#include <string>
#include <string_view>

namespace gdr {

/// Returns the whole content of a file. Throws InputError that names the path and the system's
/// reason; files over 64 MiB are refused.
std::string read_file(const std::string& path);

/// Replaces a file atomically: writes a temporary file beside it, then renames it. "-" is standard
/// output. Throws InputError that names the path and the system's reason.
void write_file(const std::string& path, std::string_view content);

}  // namespace gdr
