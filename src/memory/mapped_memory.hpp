#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "src/memory/backends.hpp"
#include "src/memory/free_listeners.hpp"

namespace gdr::memory {

/// Where an allocation of a mapped device is.
struct Placed {
  std::uint64_t device_base = 0;
  std::byte* cpu = nullptr;  ///< the mapping that NICs and the copy engine use
  Bytes size;
  int fd = -1;  ///< a descriptor that holds the bytes at `fd_offset`; -1: none
  Bytes fd_offset;
};

/// What differs between backends whose memory is mapped into the process. Calls are serialized by
/// MappedMemory.
class Backing {
 public:
  virtual ~Backing() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string sysfs_device() const = 0;
  [[nodiscard]] virtual Bytes granularity() const = 0;
  [[nodiscard]] virtual bool has_copy_engine() const = 0;
  virtual Result<Placed> place(Bytes size) = 0;  ///< size is a multiple of granularity(), not 0
  virtual void release(const Placed& placed) = 0;
  /// Copies by the copy engine; the range is inside `placed`. By default the CPU copies the
  /// mapping.
  virtual void copy_out(std::byte* to, const Placed& from, Bytes offset, Bytes size);
  virtual void copy_in(const Placed& to, Bytes offset, const std::byte* from, Bytes size);
};

/// Device memory over a mapping: everything that host, fake and bar share.
class MappedMemory final : public DeviceMemory {
 public:
  MappedMemory(std::unique_ptr<Backing> backing, const DeviceFaults& faults);
  ~MappedMemory() override;

  [[nodiscard]] std::string name() const override { return backing_->name(); }
  [[nodiscard]] std::string sysfs_device() const override { return backing_->sysfs_device(); }
  [[nodiscard]] Bytes granularity() const override { return backing_->granularity(); }
  Result<DevicePointer> allocate(Bytes size) override;
  Status free(DevicePointer pointer) override;
  [[nodiscard]] std::optional<PointerInfo> query(DevicePointer pointer) const override;
  Stream create_stream() override;
  void destroy_stream(Stream stream) override;
  Status copy_in(DevicePointer to, const void* from, Bytes size, Stream stream) override;
  Status copy_out(void* to, DevicePointer from, Bytes size, Stream stream) override;
  Status copy_within(DevicePointer to, DevicePointer from, Bytes size, Stream stream) override;
  Status fill(DevicePointer to, std::uint8_t value, Bytes size, Stream stream) override;
  Status reduce(DevicePointer into, DevicePointer from, std::uint64_t count, ElementType type,
                Stream stream) override;
  Result<Event> record(Stream stream) override;
  Result<bool> done(Event event) override;
  Status synchronize(Stream stream) override;
  Result<Exported> export_range(DevicePointer pointer, Bytes size) override;
  Status flush(DevicePointer pointer, Bytes size) override;
  [[nodiscard]] bool needs_flush() const override { return faults_.stale_reads > 0; }
  [[nodiscard]] MoverBytes moved() const override;
  std::uint64_t on_free(FreeListener listener) override {
    return listeners_.add(std::move(listener));
  }
  [[nodiscard]] bool hears_every_free() const override { return true; }
  void forget_listener(std::uint64_t id) override { listeners_.remove(id); }

 private:
  struct Allocation {
    Placed placed;
    std::uint64_t number = 0;
    bool going = false;                     // its listeners are being called: it is freed
    std::unique_ptr<std::byte[]> own_view;  // what the device sees until inbound writes are flushed
    std::uint64_t reads = 0;
  };
  enum class Kind { copy_in, copy_out, copy_within, fill, reduce };
  /// An operation in a stream.
  struct Command {
    Kind kind = Kind::fill;
    DevicePointer to{};
    DevicePointer from{};
    const void* host_from = nullptr;
    void* host_to = nullptr;
    Bytes size{};
    std::uint8_t value = 0;
    ElementType type = ElementType::int32;
  };
  struct Queue {
    std::deque<Command> waiting;
    std::uint64_t issued = 0;
    std::uint64_t finished = 0;
  };
  struct Mark {
    std::uint64_t stream = 0;
    std::uint64_t after = 0;
    unsigned asked = 0;
  };

  Allocation* find(DevicePointer pointer, Bytes size);
  [[nodiscard]] const Allocation* find(DevicePointer pointer, Bytes size) const;
  [[nodiscard]] Status outside(DevicePointer pointer, Bytes size) const;
  Status issue(Stream stream, const Command& command);
  void run_until(Queue& queue, std::uint64_t number);
  void run_all();
  void execute(const Command& command);
  void copy_in_now(const Command& command);
  void copy_out_now(const Command& command);
  void store(DevicePointer to, const std::byte* bytes, Bytes size);
  const std::byte* load(DevicePointer from, Bytes size);
  void count(Kind kind, Bytes size);

  std::unique_ptr<Backing> backing_;
  DeviceFaults faults_;
  mutable std::mutex mutex_;                         // everything below
  std::map<std::uint64_t, Allocation> allocations_;  // by device base
  std::map<std::uint64_t, Queue> queues_;
  std::map<std::uint64_t, Mark> marks_;
  std::uint64_t last_stream_ = 0;
  std::uint64_t last_event_ = 0;
  MoverBytes moved_;
  std::shared_ptr<std::atomic<std::uint64_t>> window_used_;
  FreeListeners listeners_;  // has its own lock
};

}  // namespace gdr::memory
