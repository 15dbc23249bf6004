#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/common/units.hpp"
#include "src/transport/policy/path_policy.hpp"

namespace gdr::transport {

/// A NIC to use. Unset fields are detected: the GID by address, the distance from /sys.
struct NicChoice {
  std::string name;
  std::optional<unsigned> gid_index;
  std::optional<NicDistance> distance;  ///< from the memory's device
};

struct TransportOptions {
  std::optional<TransportPath> path;  ///< set: that path or an error; nullopt: the policy chooses
  NicDistance level = NicDistance::pxb;  ///< farther NICs do not use gdr by policy
  std::vector<NicChoice> nics;           ///< empty: every RDMA device
  std::optional<unsigned> gid_index;     ///< of NICs whose NicChoice has none
  unsigned queue_pairs = 1;  ///< of each NIC that a connection uses; the nearest NICs are used
  Bytes chunk{std::uint64_t{64} << 10U};  ///< of one bounce buffer
  unsigned depth = 8;                     ///< bounce buffers per queue pair, in each direction
  unsigned queue_depth = 64;              ///< work requests per queue pair
  unsigned operations = 4096;  ///< unfinished ones per connection; more give Cause::queue_full
  Bytes largest_message{std::uint64_t{1}
                        << 30U};  ///< of one RDMA work request, if the NIC takes that much
  Duration limit{
      10};  ///< of an operation, from the next reading of the clock; then the connection ends
  Duration setup_limit{10};
  unsigned timeout = 17;  ///< of the NIC until it resends: 4.096 us times 2 to this power
  unsigned retries = 6;   ///< 0 to 6
  bool check = false;     ///< compare CRC32C of the bytes at both ends, read by the copy engine
  std::function<void(const std::string&)> log;  ///< one line per call; empty: standard error
};

}  // namespace gdr::transport
