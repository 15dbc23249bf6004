#pragma once

#include <string>
#include <string_view>

namespace gdr {

/// The whole content of a file. Throws InputError naming the path and the system's reason; files
/// over 64 MiB are refused.
std::string read_file(const std::string& path);

/// Writes a file whole: first beside it, then renamed over it, so that no reader sees half of it.
/// "-" is standard output. Throws InputError naming the path and the system's reason.
void write_file(const std::string& path, std::string_view content);

}  // namespace gdr
