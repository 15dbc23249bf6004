#pragma once

#include <deque>
#include <functional>
#include <string>

#include "emu/fabric/framing.hpp"
#include "emu/fabric/switch_core.hpp"
#include "src/common/unique_fd.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// A unix stream socket that listens on a path, which goes with it.
class Listener {
 public:
  /// Throws InputError when the path is too long, taken, or its folder cannot be written to.
  explicit Listener(const std::string& path);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Not open: nobody is waiting, or `error` says why a waiting one could not be taken.
  UniqueFd accept(bool& error);

 private:
  std::string path_;
  UniqueFd socket_;
};

/// The socket of one NIC: frames in, frames out, never waiting.
class Connection {
 public:
  enum class State {
    open,
    ended,  ///< the other side closed it
    bad,    ///< it ended within a frame, or a frame length cannot be
  };

  /// Takes a connected stream socket and makes it non-blocking.
  Connection(UniqueFd socket, Duration now);

  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Reads what is there, 256 KiB at most so that others get their turn. The frames before an end
  /// are still given out.
  State read(const std::function<void(Frame)>& take);
  /// The other side closed it; what it wrote before may still be unread.
  [[nodiscard]] bool peer_is_gone() const;

  /// Queues a frame to be written.
  void queue(const Parcel& parcel, Duration now);
  /// Writes as much as the socket takes.
  State write(Duration now);
  [[nodiscard]] bool wants_to_write() const { return !out_.empty(); }
  /// Since when the socket has taken nothing of what waits for it.
  [[nodiscard]] Duration last_progress() const { return last_progress_; }
  /// Gives up the frames that were not begun.
  std::deque<Parcel> take_unwritten();

 private:
  UniqueFd socket_;
  FrameDecoder decoder_;
  std::deque<Parcel> out_;
  std::size_t written_ = 0;  // bytes of the first one, its length included
  Duration last_progress_;
};

}  // namespace gdr::fabric
