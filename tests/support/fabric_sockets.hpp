#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "emu/fabric/fabric.hpp"
#include "emu/fabric/framing.hpp"
#include "src/common/unique_fd.hpp"

namespace gdr::fabric::test {

inline constexpr int patience_ms = 10'000;

/// A NIC like QEMU's: a blocking stream socket with length-prefixed frames.
class Nic {
 public:
  explicit Nic(UniqueFd socket) : socket_(std::move(socket)) {}
  explicit Nic(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      socket_ = UniqueFd();
  }

  [[nodiscard]] int fd() const { return socket_.get(); }

  bool send_bytes(FrameView bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool send(const Frame& frame) const {
    return send_bytes(length_prefix(frame)) && send_bytes(frame);
  }

  /// The next frame; nullopt at the end, or when none arrives.
  std::optional<Frame> receive(int wait_ms = patience_ms) {
    for (;;) {
      if (auto frame = decoder_.next()) return frame;
      pollfd poll{socket_.get(), POLLIN, 0};
      if (::poll(&poll, 1, wait_ms) != 1) return std::nullopt;
      Frame bytes(65536);
      const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count <= 0) return std::nullopt;
      decoder_.feed(FrameView(bytes).first(static_cast<std::size_t>(count)));
    }
  }

  /// True when the fabric closed this connection.
  [[nodiscard]] bool is_closed() const {
    pollfd poll{socket_.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&poll, 1, patience_ms) == 1 && ::recv(socket_.get(), &byte, 1, MSG_PEEK) <= 0;
  }

 private:
  UniqueFd socket_;
  FrameDecoder decoder_;
};

/// A fabric that a thread runs, with its sockets in a folder that must be empty at the end.
class FabricSockets : public testing::Test {
 protected:
  FabricSockets() {
    std::string name = (std::filesystem::temp_directory_path() / "gdr-fabric-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder = name;
  }
  ~FabricSockets() override {
    end();
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "sockets were left behind";
    std::filesystem::remove_all(folder);
  }

  [[nodiscard]] std::string path(std::size_t port) const {
    return folder + "/p" + std::to_string(port);
  }

  FabricOptions options(std::size_t ports) {
    FabricOptions made;
    for (std::size_t i = 0; i < ports; ++i)
      made.ports.push_back({"h" + std::to_string(i) + "/nic0", path(i), -1, {}, {}});
    return made;
  }

  void begin(const FabricOptions& with) {
    fabric.emplace(with);
    thread = std::thread([this] { fabric->run_until([this] { return stop.load(); }); });
  }

  void end() {
    if (!thread.joinable()) return;
    stop = true;
    fabric->wake();
    thread.join();
    fabric.reset();
  }

  /// Waits until the counters are as expected.
  template <typename Condition>
  [[nodiscard]] bool eventually(Condition holds) const {
    for (int i = 0; i < patience_ms; ++i) {
      if (holds(fabric->counters())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  [[nodiscard]] bool connected(std::size_t count) const {
    return eventually([&](const FabricCounters& counters) {
      std::size_t there = 0;
      for (const PortCounters& port : counters.ports) there += port.connected ? 1 : 0;
      return there == count;
    });
  }

  std::string folder;
  std::optional<Fabric> fabric;
  std::atomic<bool> stop{false};
  std::thread thread;
};

}  // namespace gdr::fabric::test
