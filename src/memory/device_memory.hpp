#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/common/status.hpp"
#include "src/common/unique_fd.hpp"
#include "src/common/units.hpp"

namespace gdr::memory {

/// An address of device memory. The CPU must not use it: on a device it is not a CPU address, and
/// the fakes trap.
struct DevicePointer {
  std::uint64_t address = 0;
  auto operator<=>(const DevicePointer&) const = default;
};
constexpr DevicePointer operator+(DevicePointer pointer, Bytes offset) {
  return {pointer.address + offset.count};
}

enum class ElementType { float32, float16, bfloat16, int32 };
Bytes size_of(ElementType type);

/// Operations of a stream run one after another, those of different streams in any order. Stream 0
/// is always there.
struct Stream {
  std::uint64_t id = 0;
  bool operator==(const Stream&) const = default;
};

/// A mark in a stream. It is done when everything before it is.
struct Event {
  std::uint64_t id = 0;
};

/// What is known of a pointer (as from cuPointerGetAttribute).
struct PointerInfo {
  DevicePointer base;            ///< of the allocation that the pointer is in
  Bytes size;                    ///< of the allocation
  std::uint64_t allocation = 0;  ///< a number that no other allocation of this process ever has
  [[nodiscard]] bool contains(DevicePointer pointer) const {
    return pointer >= base && pointer.address - base.address < size.count;
  }
};

/// Bytes moved, by what moved them. CPU copies are those of backends that have no copy engine.
struct MoverBytes {
  Bytes copy_engine_in;
  Bytes copy_engine_out;
  Bytes copy_engine_within;
  Bytes cpu;
  bool operator==(const MoverBytes&) const = default;
};

/// The two forms in which a NIC can register a range. The device pointer is the RDMA address in
/// both.
struct Exported {
  struct DmaBuf {
    UniqueFd fd;
    Bytes offset;  ///< of the range in the descriptor
  };
  std::optional<DmaBuf> dma_buf;
  std::string no_dma_buf;                     ///< why there is none
  std::optional<std::uint64_t> host_address;  ///< for ibv_reg_mr: works where a
                                              ///< peer-memory driver knows the memory
  std::string no_host_address;                ///< why there is none
  std::shared_ptr<void>
      window;  ///< the export's part of the device's window (BAR1); freed with the last copy
};

/// Memory of one device. Every function may be called from any thread. Sizes of 0 are fine. A range
/// that is not inside one allocation gives Cause::invalid. Copies, fill and reduce are
/// asynchronous: buffers stay the caller's until an event behind them is done; a failure is
/// reported there at the latest.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "fake0"
  [[nodiscard]] virtual std::string sysfs_device()
      const = 0;  ///< real path of its PCI function in /sys; "" when it has none
  [[nodiscard]] virtual Bytes granularity()
      const = 0;  ///< of exports; a power of two; allocations are multiples of it

  virtual Result<DevicePointer> allocate(Bytes size) = 0;
  /// `pointer` is what allocate returned. Listeners run while the memory is still mapped; query and
  /// export_range already fail.
  virtual Status free(DevicePointer pointer) = 0;
  [[nodiscard]] virtual std::optional<PointerInfo> query(DevicePointer pointer) const = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) = 0;  ///< waits for the operations in it
  virtual Status copy_in(DevicePointer to, const void* from, Bytes size, Stream stream) = 0;
  virtual Status copy_out(void* to, DevicePointer from, Bytes size, Stream stream) = 0;
  virtual Status copy_within(DevicePointer to, DevicePointer from, Bytes size, Stream stream) = 0;
  virtual Status fill(DevicePointer to, std::uint8_t value, Bytes size, Stream stream) = 0;
  /// into[i] += from[i], rounded to nearest even.
  virtual Status reduce(DevicePointer into, DevicePointer from, std::uint64_t count,
                        ElementType type, Stream stream) = 0;
  virtual Result<Event> record(Stream stream) = 0;
  virtual Result<bool> done(Event event) = 0;  ///< true or a failure also destroys the event
  virtual Status synchronize(Stream stream) = 0;

  /// A range of whole granules inside one allocation.
  virtual Result<Exported> export_range(DevicePointer pointer, Bytes size) = 0;
  /// Afterwards device-side reads see what NICs wrote into the range before.
  virtual Status flush(DevicePointer pointer, Bytes size) = 0;
  /// Whether such reads may miss some of it before a flush. False: the device itself keeps the
  /// order.
  [[nodiscard]] virtual bool needs_flush() const = 0;
  [[nodiscard]] virtual MoverBytes moved() const = 0;

  using FreeListener = std::function<void(const PointerInfo&)>;
  virtual std::uint64_t on_free(
      FreeListener listener) = 0;  ///< called by the thread that frees, with no lock held
  /// Whether listeners are called at every free. False: memory can also be freed without this
  /// object.
  [[nodiscard]] virtual bool hears_every_free() const = 0;
  virtual void forget_listener(
      std::uint64_t id) = 0;  ///< not from a listener; returns when no call of it is running
};

}  // namespace gdr::memory
