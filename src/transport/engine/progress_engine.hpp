#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "src/transport/engine/registration_cache.hpp"
#include "src/transport/policy/options.hpp"
#include "src/transport/verbs/gid.hpp"

namespace gdr::transport {

/// An opened NIC.
struct Nic {
  std::string name;
  std::unique_ptr<Device> device;
  GidEntry gid;
  PortState port;
  NicDistance distance = NicDistance::phb;
  bool port_down = false;
};

/// What the engine makes progress on: a connection. Both functions are called with the engine's
/// lock held.
class EngineMember {
 public:
  virtual ~EngineMember() = default;
  /// False when nothing happened. `thorough`: also check what needs a system call.
  virtual bool progress(bool thorough) = 0;
  /// This allocation is being freed.
  virtual void memory_freed(const memory::PointerInfo& info) = 0;
};

/// What the connections of one Transport share. The caller holds the lock, except while listeners
/// of the memory or the user's functions run.
class ProgressEngine {
 public:
  ProgressEngine(std::shared_ptr<Verbs> verbs, std::shared_ptr<memory::DeviceMemory> memory,
                 const TransportOptions& options);
  ~ProgressEngine();
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  std::mutex mutex;
  const std::shared_ptr<Verbs> verbs;
  const std::shared_ptr<memory::DeviceMemory> memory;
  const TransportOptions options;
  const bool flushes;  ///< inbound RDMA writes, before they are reported
  const bool
      hears_every_free;   ///< if so, the cache knows what is registered without querying the memory
  std::vector<Nic> nics;  ///< those that connections use: the nearest with an active port
  std::unique_ptr<RegistrationCache> registrations;
  PathFacts facts;
  OwnChoice choice;

  void log(const std::string& line) const;
  /// Makes inbound RDMA writes into the range visible to the device, where that takes a flush.
  [[nodiscard]] Status flush(memory::DevicePointer pointer, Bytes size) const {
    return flushes && size.count > 0 ? memory->flush(pointer, size) : Status();
  }
  /// Makes progress on all connections, with the lock held; false when nothing happened. What needs
  /// a system call (the set-up stream, events of NICs, time limits) is checked once in `rounds`
  /// calls: 64 if they follow each other at once, 1 if the caller sleeps in between.
  bool progress(unsigned rounds);
  void idle(unsigned rounds) { verbs->idle(rounds); }
  // With the lock held.
  void add(EngineMember& member) { members_.push_back(&member); }
  void remove(EngineMember& member) { std::erase(members_, &member); }

 private:
  void open_nics();
  void add_nic(const NicChoice& wanted, bool named, std::string& reasons);
  void keep_nearest();
  void find_facts();
  bool poll_devices();
  void freed(const memory::PointerInfo& info);

  std::vector<EngineMember*> members_;
  std::uint64_t listener_ = 0;
  unsigned rounds_ = 0;
};

}  // namespace gdr::transport
