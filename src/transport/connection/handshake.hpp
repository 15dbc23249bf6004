#pragma once

#include <optional>
#include <vector>

#include "src/transport/engine/progress_engine.hpp"
#include "src/transport/lanes/rc_lane.hpp"

namespace gdr::transport {

/// What both sides have agreed on.
struct Negotiated {
  PathChoice path;
  Bytes chunk;                                       ///< payload bytes per frame
  std::vector<std::unique_ptr<RcLane>> queue_pairs;  ///< connected; none with path tcp
  std::unique_ptr<ByteStream> stream;
};

/// The set-up of a connection: both sides send a greeting; the side that was called answers with as
/// many queue pairs as it can. After an error the connection has failed, and the reason was sent to
/// the peer as far as the stream took it without waiting.
class Handshake {
 public:
  Handshake(ProgressEngine& engine, std::unique_ptr<ByteStream> stream, bool initiator);
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  /// Prepares the initiator's greeting. To be called once, first.
  Status begin();
  /// nullopt while the handshake is in progress.
  Result<std::optional<Negotiated>> progress();

 private:
  Status make_lanes(std::size_t count);
  Status write_hello();
  Result<bool> read_hello();  ///< the peer's; true when it is complete; reads no byte beyond it
  Status take_hello();
  Status conclude(const Hello& peer);
  Status connect_lanes(const Hello& peer);
  Status reject(const Status& reason);
  [[nodiscard]] Hello own_hello() const;

  ProgressEngine& engine_;
  std::unique_ptr<ByteStream> stream_;
  const bool initiator_;
  Bytes chunk_;
  PathChoice path_;
  std::vector<std::unique_ptr<RcLane>> lanes_;
  std::vector<LaneOffer> offers_;
  std::vector<std::byte> hello_out_;
  std::vector<std::byte> hello_in_;
  bool hello_taken_ = false;
};

}  // namespace gdr::transport
