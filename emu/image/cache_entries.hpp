#pragma once

#include <string>
#include <vector>

#include "emu/image/kernel_cache.hpp"
#include "emu/process/signals.hpp"
#include "src/common/unique_fd.hpp"

namespace gdr::emu {

// How things get into the cache: under a lock, complete or not at all, named by what they were made
// from.

/// Ends the name of everything that is not complete yet.
inline constexpr const char* part = ".part";

/// Held while something is made. Makes the folder. Throws InputError, Interrupted.
UniqueFd lock_cache(const std::string& folder, Signals& signals, const Say& say);

/// Removes what was not completed: in the cache and in each folder of it.
void remove_parts(const std::string& folder);

/// Does it at the end, also when the making is interrupted.
struct PartsRemover {
  const std::string& folder;
  ~PartsRemover() { remove_parts(folder); }
};

/// FNV-1a of the files' content, 16 hexadecimal digits.
std::string fingerprint(const std::vector<std::string>& files);

/// The files of a folder, in order of their names.
std::vector<std::string> files_below(const std::string& folder);

/// Builds gdr_fakegpu.ko from `sources` with a kernel's `headers`; it appears in the folder
/// `target`. Throws InputError, Interrupted.
void build_module(const std::string& headers, const std::string& sources, const std::string& target,
                  Signals& signals);

}  // namespace gdr::emu
