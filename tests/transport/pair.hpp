#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/transport/verbs/double.hpp"
#include "tests/transport/end.hpp"

namespace gdr::transport {

struct PairOptions {
  DoubleOptions fabric;  ///< of the double alone
  TransportOptions a;
  TransportOptions b;
  std::vector<std::string> nics_a{"a0"};
  std::vector<std::string> nics_b{"b0"};
  MemoryChoice memory_a;
  MemoryChoice memory_b;
  bool hide_flush = false;  ///< the memory claims, wrongly, that it needs no flush
  bool wait_ready = true;
  bool set_up_over_management =
      false;  ///< in guests: set-up (and path tcp) by the management network, which has no faults

  void both(const std::function<void(TransportOptions&)>& change) {
    change(a);
    change(b);
  }
  void memory(const std::function<void(MemoryChoice&)>& change) {
    change(memory_a);
    change(memory_b);
  }
};

/// Where pairs live. Null: the double in this process, with both ends run by this thread. Else two
/// guests of `gdr emulate` with rdma_rxe: this process is A, the one at the other end of the agent
/// is B. Set by main.
inline Agent* guest_world = nullptr;
inline bool in_guests() { return guest_world != nullptr; }
/// "a0" is "rxe0" in guests.
std::string nic_name(const std::string& name);

/// Two hosts.
class Pair {
 public:
  explicit Pair(PairOptions options);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  bool step();
  /// False when it did not become true within `limit`, in simulated time where the world is
  /// simulated.
  bool run_until(const std::function<bool()>& holds, Duration limit = Duration{60});
  [[nodiscard]] Duration now() const { return verbs_->now(); }
  OperationResult finish(End& end, const Result<OperationId>& operation);
  RemoteRange share(End& owner, End& user, std::uint64_t tag, memory::DevicePointer pointer,
                    std::size_t size);
  /// One more connection between the two transports, of A and of B; not set up yet.
  std::pair<std::unique_ptr<EndConnection>, std::unique_ptr<EndConnection>> connect();

  std::shared_ptr<DoubleFabric> fabric;  ///< null in guests
  End a;
  End b;

 private:
  void set_up_here(End& end, TransportOptions options, const std::vector<std::string>& nics,
                   const MemoryChoice& memory, unsigned index);
  std::shared_ptr<Verbs> verbs_;
  bool over_management_ = false;
  bool hide_flush_ = false;
};

}  // namespace gdr::transport
