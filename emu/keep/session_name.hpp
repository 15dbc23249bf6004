#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/common/unique_fd.hpp"

namespace gdr::emu {

/// Where guests that are kept are found again: $XDG_RUNTIME_DIR/gdr, or /tmp/gdr-UID. Made with
/// mode 0700. Throws InputError when it is another user's, or open to others.
std::string sessions_folder();

/// The files of a name: a lock that its owner holds while it lives, a socket, and why it ended when
/// it was not told to.
struct SessionFiles {
  std::string lock;
  std::string socket;
  std::string failure;
};

/// Throws InputError for a name that is no file name of letters, digits, '.', '_' and '-', or too
/// long for a socket's path.
SessionFiles session_files(const std::string& folder, const std::string& name);

/// Takes a name: the lock is held as long as the descriptor is open, in whatever process. What a
/// dead owner left is removed. nullopt when the name is in use.
std::optional<UniqueFd> take_name(const SessionFiles& files);

/// Whether somebody holds the lock.
bool in_use(const SessionFiles& files);

/// Removes all of them, the lock last. Only who holds the lock may do it.
void remove_files(const SessionFiles& files);

/// Removes what a dead owner left, unless the name is in use.
void clean_up(const SessionFiles& files);

/// Names for which there is a lock file, in order.
std::vector<std::string> session_names(const std::string& folder);

/// A socket that listens on a path. Connections keep messages apart (SOCK_SEQPACKET). Throws
/// std::system_error.
UniqueFd listen_at(const std::string& path);
/// nullopt when nobody listens there.
std::optional<UniqueFd> connect_to(const std::string& path);

}  // namespace gdr::emu
