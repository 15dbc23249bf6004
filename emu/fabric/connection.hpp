#pragma once

#include <deque>
#include <functional>
#include <string>

#include "emu/fabric/framing.hpp"
#include "emu/fabric/switch_core.hpp"
#include "src/common/unique_fd.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// A unix stream socket that listens on a path and removes the path when destroyed.
class Listener {
 public:
  /// Throws InputError when the path is too long or taken, or its folder is not writable.
  explicit Listener(const std::string& path);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Returns a closed descriptor if no connection is waiting or, with a reason in `error`, if
  /// accept() failed.
  UniqueFd accept(bool& error);

 private:
  std::string path_;
  UniqueFd socket_;
};

/// The socket of one NIC. Reads and writes frames without blocking.
class Connection {
 public:
  enum class State {
    open,
    ended,  ///< the other side closed it
    bad,    ///< it ended within a frame, or a frame length is invalid
  };

  /// Takes a connected stream socket and makes it non-blocking.
  Connection(UniqueFd socket, Duration now);

  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Reads at most 256 KiB, so that one port does not delay the others. Delivers all frames before
  /// an end or an error.
  State read(const std::function<void(Frame)>& take);
  /// True if the other side closed it; there may still be unread data.
  [[nodiscard]] bool peer_is_gone() const;

  /// Queues a frame to be written.
  void queue(const Parcel& parcel, Duration now);
  /// Writes as much as the socket takes.
  State write(Duration now);
  [[nodiscard]] bool wants_to_write() const { return !out_.empty(); }
  /// When the socket last accepted data, while frames are waiting.
  [[nodiscard]] Duration last_progress() const { return last_progress_; }
  /// Drops the frames whose transmission has not begun.
  std::deque<Parcel> take_unwritten();

 private:
  UniqueFd socket_;
  FrameDecoder decoder_;
  std::deque<Parcel> out_;
  std::size_t written_ = 0;  // bytes of the first frame, including its length prefix
  Duration last_progress_;
};

}  // namespace gdr::fabric
