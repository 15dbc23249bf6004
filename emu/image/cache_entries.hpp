#pragma once

#include <string>
#include <vector>

#include "emu/image/kernel_cache.hpp"
#include "emu/process/signals.hpp"
#include "src/common/unique_fd.hpp"

namespace gdr::emu {

// Adds entries to the cache: under a lock, complete or not at all, named by a fingerprint of their
// inputs.

/// The suffix of incomplete entries.
inline constexpr const char* part = ".part";

/// Takes the cache's lock and creates its folder. Throws InputError, Interrupted.
UniqueFd lock_cache(const std::string& folder, Signals& signals, const Say& say);

/// Removes incomplete entries, in the cache and in each of its folders.
void remove_parts(const std::string& folder);

/// Removes incomplete entries when destroyed, also after an interruption.
struct PartsRemover {
  const std::string& folder;
  ~PartsRemover() { remove_parts(folder); }
};

/// FNV-1a of the files' content, 16 hexadecimal digits.
std::string fingerprint(const std::vector<std::string>& files);

/// The files of a folder, sorted by name.
std::vector<std::string> files_below(const std::string& folder);

/// Builds gdr_fakegpu.ko from `sources` with a kernel's `headers` into the folder `target`. Throws
/// InputError, Interrupted.
void build_module(const std::string& headers, const std::string& sources, const std::string& target,
                  Signals& signals);

}  // namespace gdr::emu
