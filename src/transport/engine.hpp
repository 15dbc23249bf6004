#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "src/transport/gid.hpp"
#include "src/transport/registration_cache.hpp"
#include "src/transport/transport.hpp"

namespace gdr::transport {

/// An opened NIC.
struct Nic {
  std::string name;
  std::unique_ptr<Device> device;
  GidEntry gid;
  PortState port;
  Distance distance = Distance::phb;
  bool port_down = false;
};

/// What connections of one Transport share. The lock is held by whoever is inside, but not while
/// memory's listeners or the user run.
class Engine {
 public:
  Engine(std::shared_ptr<Verbs> verbs, std::shared_ptr<memory::DeviceMemory> memory,
         const TransportOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::mutex mutex;
  const std::shared_ptr<Verbs> verbs;
  const std::shared_ptr<memory::DeviceMemory> memory;
  const TransportOptions options;
  const bool flushes;           ///< inbound RDMA writes, before anybody hears of them
  const bool hears_every_free;  ///< so that what is registered is known without asking the memory
  std::vector<Nic> nics;        ///< those that connections use: the nearest with an active port
  std::unique_ptr<RegistrationCache> registrations;
  PathFacts facts;
  OwnChoice choice;

  void log(const std::string& line) const;
  /// Moves all connections on, with the lock held; false when nothing happened. What needs a system
  /// call (the set-up stream, events of NICs, time limits) is looked at once in `rounds`: 64 where
  /// they follow each other at once, 1 where somebody sleeps in between.
  bool progress(unsigned rounds);
  void idle(unsigned rounds) { verbs->idle(rounds); }
  // With the lock held.
  void add(ConnectionCore& connection) { connections_.push_back(&connection); }
  void remove(ConnectionCore& connection) { std::erase(connections_, &connection); }

 private:
  void open_nics();
  void add_nic(const NicChoice& wanted, bool named, std::string& reasons);
  void keep_nearest();
  void find_facts();
  bool poll_devices();
  void freed(const memory::PointerInfo& info);

  std::vector<ConnectionCore*> connections_;
  std::uint64_t listener_ = 0;
  unsigned rounds_ = 0;
};

}  // namespace gdr::transport
