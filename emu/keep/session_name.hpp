#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/common/unique_fd.hpp"

namespace gdr::emu {

/// The folder of the sessions' files: $XDG_RUNTIME_DIR/gdr, or /tmp/gdr-UID, created with mode
/// 0700. Throws InputError if it belongs to another user or is open to others.
std::string sessions_folder();

/// The files of a name: a lock that its daemon holds while it runs, a socket, and the reason if it
/// ended by itself.
struct SessionFiles {
  std::string lock;
  std::string socket;
  std::string failure;
};

/// Throws InputError for a name that is not a file name of letters, digits, '.', '_' and '-', or is
/// too long for a socket's path.
SessionFiles session_files(const std::string& folder, const std::string& name);

/// Takes a name. The lock is held as long as any process has the descriptor open. Removes what a
/// dead owner left. nullopt when the name is in use.
std::optional<UniqueFd> take_name(const SessionFiles& files);

/// True if a process holds the lock.
bool in_use(const SessionFiles& files);

/// Removes all files, the lock last. Only the lock's holder may call it.
void remove_files(const SessionFiles& files);

/// Removes what a dead owner left, unless the name is in use.
void clean_up(const SessionFiles& files);

/// The names that have a lock file, sorted.
std::vector<std::string> session_names(const std::string& folder);

/// A socket that listens on a path; SOCK_SEQPACKET keeps message boundaries. Throws
/// std::system_error.
UniqueFd listen_at(const std::string& path);
/// nullopt when nobody listens there.
std::optional<UniqueFd> connect_to(const std::string& path);

}  // namespace gdr::emu
