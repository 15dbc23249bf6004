#pragma once

#include <memory>
#include <string>
#include <utility>

#include "src/memory/device_memory.hpp"

namespace gdr::transport {

/// Wraps device memory, claims that it needs no flush and does none: shows what a transport without
/// flushes would do.
class UnflushedMemory final : public memory::DeviceMemory {
 public:
  explicit UnflushedMemory(std::shared_ptr<memory::DeviceMemory> memory)
      : memory_(std::move(memory)) {}

  Status flush(memory::DevicePointer, Bytes) override { return {}; }
  [[nodiscard]] bool needs_flush() const override { return false; }

  [[nodiscard]] std::string name() const override { return memory_->name(); }
  [[nodiscard]] std::string sysfs_device() const override { return memory_->sysfs_device(); }
  [[nodiscard]] Bytes granularity() const override { return memory_->granularity(); }
  Result<memory::DevicePointer> allocate(Bytes size) override { return memory_->allocate(size); }
  Status free(memory::DevicePointer pointer) override { return memory_->free(pointer); }
  [[nodiscard]] std::optional<memory::PointerInfo> query(
      memory::DevicePointer pointer) const override {
    return memory_->query(pointer);
  }
  memory::Stream create_stream() override { return memory_->create_stream(); }
  void destroy_stream(memory::Stream stream) override { memory_->destroy_stream(stream); }
  Status copy_in(memory::DevicePointer to, const void* from, Bytes size,
                 memory::Stream stream) override {
    return memory_->copy_in(to, from, size, stream);
  }
  Status copy_out(void* to, memory::DevicePointer from, Bytes size,
                  memory::Stream stream) override {
    return memory_->copy_out(to, from, size, stream);
  }
  Status copy_within(memory::DevicePointer to, memory::DevicePointer from, Bytes size,
                     memory::Stream stream) override {
    return memory_->copy_within(to, from, size, stream);
  }
  Status fill(memory::DevicePointer to, std::uint8_t value, Bytes size,
              memory::Stream stream) override {
    return memory_->fill(to, value, size, stream);
  }
  Status reduce(memory::DevicePointer into, memory::DevicePointer from, std::uint64_t count,
                memory::ElementType type, memory::Stream stream) override {
    return memory_->reduce(into, from, count, type, stream);
  }
  Result<memory::Event> record(memory::Stream stream) override { return memory_->record(stream); }
  Result<bool> done(memory::Event event) override { return memory_->done(event); }
  Status synchronize(memory::Stream stream) override { return memory_->synchronize(stream); }
  Result<memory::Exported> export_range(memory::DevicePointer pointer, Bytes size) override {
    return memory_->export_range(pointer, size);
  }
  [[nodiscard]] memory::MoverBytes moved() const override { return memory_->moved(); }
  std::uint64_t on_free(FreeListener listener) override {
    return memory_->on_free(std::move(listener));
  }
  [[nodiscard]] bool hears_every_free() const override { return memory_->hears_every_free(); }
  void forget_listener(std::uint64_t id) override { memory_->forget_listener(id); }

 private:
  std::shared_ptr<memory::DeviceMemory> memory_;
};

}  // namespace gdr::transport
