#pragma once

#include <atomic>
#include <thread>
#include <utility>

#include "emu/fabric/fabric.hpp"

namespace gdr::emu {

/// An Ethernet switch that runs in its own thread while this object lives.
class SwitchThread {
 public:
  /// Throws InputError as Fabric does.
  explicit SwitchThread(const fabric::FabricOptions& options, fabric::FrameTap tap = {})
      : fabric_(options, std::move(tap)),
        thread_([this] { fabric_.run_until([this] { return stop_.load(); }); }) {}
  ~SwitchThread() {
    stop_ = true;
    fabric_.wake();
    thread_.join();
  }
  SwitchThread(const SwitchThread&) = delete;
  SwitchThread& operator=(const SwitchThread&) = delete;

  void arm() { fabric_.arm(); }
  void set_faults(const std::vector<fabric::PortOptions>& ports, fabric::Seed seed) {
    fabric_.set_faults(ports, seed);
  }
  [[nodiscard]] fabric::FabricCounters counters() const { return fabric_.counters(); }

 private:
  std::atomic<bool> stop_ = false;
  fabric::Fabric fabric_;
  std::thread thread_;
};

}  // namespace gdr::emu
