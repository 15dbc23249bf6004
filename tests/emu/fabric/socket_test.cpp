// The whole fabric in one process: a thread runs it, and the tests act as the NICs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "emu/fabric/fabric.hpp"
#include "emu/fabric/framing.hpp"
#include "src/common/unique_fd.hpp"
#include "tests/support/fabric_sockets.hpp"
#include "tests/support/fabric_support.hpp"

namespace {

using namespace gdr::fabric;
using namespace gdr::fabric::test;
using namespace gdr::literals;
using gdr::Duration;

TEST_F(FabricSockets, FramesBetweenThree) {
  begin(options(3));
  Nic a(path(0));
  Nic b(path(1));
  Nic c(path(2));
  ASSERT_TRUE(connected(3));
  const Frame question = plain_frame(broadcast, mac(1), 60);
  const Frame answer = plain_frame(mac(1), mac(2), 9000);
  ASSERT_TRUE(a.send(question));
  EXPECT_EQ(b.receive(), question);
  EXPECT_EQ(c.receive(), question);
  ASSERT_TRUE(b.send(answer));
  EXPECT_EQ(a.receive(), answer);
  EXPECT_EQ(c.receive(20), std::nullopt) << "not for this one";
  end();
}

TEST_F(FabricSockets, OpenSockets) {
  std::array<std::array<int, 2>, 2> pairs{};
  FabricOptions with;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i].data()), 0);
    with.ports.push_back({"h" + std::to_string(i) + "/nic0", "", pairs[i][1], {}, {}});
  }
  begin(with);
  Nic a{gdr::UniqueFd(pairs[0][0])};
  {
    Nic b{gdr::UniqueFd(pairs[1][0])};
    const Frame frame = plain_frame(broadcast, mac(1));
    ASSERT_TRUE(a.send(frame));
    EXPECT_EQ(b.receive(), frame);
  }
  EXPECT_TRUE(connected(1));
}

TEST_F(FabricSockets, ManyFramesKeepTheirOrderAndTheSlowReaderLosesNone) {
  begin(options(2));
  Nic a(path(0));
  Nic b(path(1));
  ASSERT_TRUE(connected(2));
  constexpr std::size_t frames = 10'000;  // of 4 KiB: ten times the limit in flight
  std::thread sender([&] {
    Frame frame = plain_frame(mac(2), mac(1), 4170);
    for (std::uint32_t i = 0; i < frames; ++i) {
      store32(frame, 14, i);
      if (!a.send(frame)) return;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the sender is blocked meanwhile
  for (std::uint32_t i = 0; i < frames; ++i) {
    const auto frame = b.receive();
    if (!frame || load32(*frame, 14) != i) {
      ADD_FAILURE() << "frame " << i;
      break;
    }
  }
  sender.join();
  EXPECT_EQ(fabric->counters().ports[1].rx.dropped.total(), 0U);
  EXPECT_EQ(fabric->counters().ports[1].rx.passed.frames, frames);
}

TEST_F(FabricSockets, AStalledNicDoesNotStopTheOthers) {
  FabricOptions with = options(3);
  with.stall_after = Duration{0.05};
  with.buffer = 64_KiB;
  begin(with);
  Nic a(path(0));
  Nic stuck(path(1));
  Nic c(path(2));
  ASSERT_TRUE(connected(3));
  const Frame frame = plain_frame(mac(9), mac(1), 4170);  // to an unknown address: flooded to both
  std::thread sender([&] {
    for (int i = 0; i < 500; ++i)
      if (!a.send(frame)) return;
  });
  int received = 0;
  while (received < 500 && c.receive()) ++received;
  sender.join();
  EXPECT_EQ(received, 500);
  EXPECT_GT(fabric->counters().ports[1].rx.dropped.stalled, 0U);
  EXPECT_EQ(fabric->counters().ports[2].rx.dropped.stalled, 0U);
  // When it reads again, it gets complete frames and then new ones.
  while (stuck.receive(100)) continue;
  const Frame fresh = plain_frame(broadcast, mac(1), 77);
  ASSERT_TRUE(a.send(fresh));
  EXPECT_EQ(stuck.receive(), fresh);
}

TEST_F(FabricSockets, ANicGoesAndComesAgain) {
  begin(options(2));
  Nic a(path(0));
  {
    Nic b(path(1));
    ASSERT_TRUE(connected(2));
  }
  ASSERT_TRUE(connected(1));
  EXPECT_EQ(fabric->counters().ports[1].bad_streams, 0U);
  Nic b(path(1));
  ASSERT_TRUE(connected(2));
  ASSERT_TRUE(a.send(plain_frame(broadcast, mac(1))));
  EXPECT_TRUE(b.receive());
  EXPECT_EQ(fabric->counters().ports[1].connections, 2U);
}

TEST_F(FabricSockets, ASecondNicAtAPortIsRefused) {
  begin(options(2));
  Nic first(path(0));
  ASSERT_TRUE(connected(1));
  Nic second(path(0));
  EXPECT_TRUE(second.is_closed());
  EXPECT_TRUE(
      eventually([](const FabricCounters& counters) { return counters.ports[0].refused == 1; }));
  Nic b(path(1));
  ASSERT_TRUE(connected(2));
  ASSERT_TRUE(first.send(plain_frame(broadcast, mac(1))));
  EXPECT_TRUE(b.receive()) << "the first one is not disturbed";
}

TEST_F(FabricSockets, HostileStreams) {
  begin(options(2));
  Nic b(path(1));
  std::uint64_t bad = 0;
  const auto attack = [&](const Frame& bytes, bool closed_by_us) {
    Nic a(path(0));
    ASSERT_TRUE(connected(2));
    ASSERT_TRUE(a.send_bytes(bytes));
    if (!closed_by_us) {
      EXPECT_TRUE(a.is_closed());
    }
    ++bad;
  };
  attack({0x00, 0x01, 0x00, 0x01}, false);  // 65,537
  ASSERT_TRUE(connected(1));
  attack({0xff, 0xff, 0xff, 0xff, 1, 2, 3}, false);
  ASSERT_TRUE(connected(1));
  attack({0, 0, 0, 60, 1, 2, 3}, true);  // half a frame, then the end
  ASSERT_TRUE(connected(1));
  attack({0, 0}, true);  // half a length
  ASSERT_TRUE(connected(1));
  EXPECT_EQ(fabric->counters().ports[0].bad_streams, bad);
  EXPECT_EQ(b.receive(20), std::nullopt);
  // Lengths of invalid frames and one of a valid frame, in the same stream.
  Nic a(path(0));
  ASSERT_TRUE(connected(2));
  ASSERT_TRUE(a.send({}));
  ASSERT_TRUE(a.send(Frame(13, 1)));
  ASSERT_TRUE(a.send(plain_frame(broadcast, mac(1), 14)));
  EXPECT_EQ(b.receive()->size(), 14U);
  EXPECT_EQ(fabric->counters().ports[0].tx.dropped.runt, 2U);
}

TEST_F(FabricSockets, TheReceiverClosesWhileFramesComeForIt) {
  begin(options(2));
  Nic a(path(0));
  std::optional<Nic> b(path(1));
  ASSERT_TRUE(connected(2));
  const Frame frame = plain_frame(broadcast, mac(1), 4170);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(a.send(frame));
  b.reset();
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(a.send(frame));
  ASSERT_TRUE(connected(1));
  const bool all_there = eventually(
      [](const FabricCounters& counters) { return counters.ports[0].tx.arrived.frames == 2200; });
  EXPECT_TRUE(all_there);
  const auto rx = fabric->counters().ports[1].rx;
  EXPECT_EQ(rx.arrived.frames, rx.passed.frames + rx.dropped.total());
}

TEST_F(FabricSockets, DelayIsAtLeastThatLong) {
  FabricOptions with = options(2);
  with.ports[0].tx.delay = Duration{0.05};
  begin(with);
  Nic a(path(0));
  Nic b(path(1));
  ASSERT_TRUE(connected(2));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(a.send(plain_frame(broadcast, mac(1))));
  ASSERT_TRUE(b.receive());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

TEST_F(FabricSockets, FaultsOnceArmed) {
  FabricOptions with = options(2);
  with.armed = false;
  with.ports[0].tx.down_after = 2;
  begin(with);
  Nic a(path(0));
  Nic b(path(1));
  ASSERT_TRUE(connected(2));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a.send(plain_frame(broadcast, mac(1))));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(b.receive());
  fabric->arm();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a.send(plain_frame(broadcast, mac(1))));
  EXPECT_TRUE(eventually(
      [](const FabricCounters& counters) { return counters.ports[0].tx.dropped.down == 3; }));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(b.receive());
  EXPECT_EQ(b.receive(20), std::nullopt);
}

TEST_F(FabricSockets, SameSeedSameDropsThroughSockets) {
  std::vector<std::string> runs;
  for (int run = 0; run < 2; ++run) {
    FabricOptions with = options(2);
    with.seed = {17};
    with.ports[0].tx.loss = {0.1};
    Fabric one(with);
    Nic a(path(0));
    Nic b(path(1));
    while (one.counters().ports[1].connections == 0 || one.counters().ports[0].connections == 0)
      one.run_once(Duration{1});
    for (std::uint32_t i = 0; i < 300; ++i) {
      Frame frame = plain_frame(mac(2), mac(1), 60);
      store32(frame, 14, i);
      ASSERT_TRUE(a.send(frame));
      one.run_once(Duration{1});
    }
    while (one.counters().ports[0].tx.arrived.frames < 300) one.run_once(Duration{1});
    std::string seen;
    while (const auto frame = b.receive(0)) seen += std::to_string(load32(*frame, 14)) + ' ';
    runs.push_back(seen);
    EXPECT_GT(one.counters().ports[0].tx.dropped.loss, 10U);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST_F(FabricSockets, ACaptureAtBothPoints) {
  for (const CapturePoint point : {CapturePoint::sent, CapturePoint::delivered}) {
    FabricOptions with = options(3);
    with.pcap = path(9);
    with.capture = point;
    with.ports[2].rx.loss = {1};
    stop = false;
    begin(with);
    Nic a(path(0));
    Nic b(path(1));
    Nic c(path(2));
    ASSERT_TRUE(connected(3));
    ASSERT_TRUE(a.send(plain_frame(broadcast, mac(1), 100)));
    ASSERT_TRUE(b.receive());
    EXPECT_EQ(fabric->counters().pcap_error, "");
    end();
    EXPECT_EQ(std::filesystem::file_size(path(9)), 24 + 16 + 100U);
    std::filesystem::remove(path(9));
  }
}

TEST_F(FabricSockets, Errors) {
  FabricOptions taken = options(2);
  { const gdr::UniqueFd other(::open(path(1).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }
  EXPECT_EQ(error_of([&] { Fabric{taken}; }),
            "socket " + path(1) +
                ": cannot create it: it already exists; another run uses it or left it behind");
  EXPECT_FALSE(std::filesystem::exists(path(0))) << "the one made before is removed";
  EXPECT_TRUE(std::filesystem::exists(path(1))) << "the one of others is not";
  std::filesystem::remove(path(1));

  FabricOptions no_folder = options(1);
  no_folder.ports[0].path = folder + "/none/p0";
  EXPECT_EQ(error_of([&] { Fabric{no_folder}; }),
            "socket " + folder + "/none/p0: cannot create it: No such file or directory");

  FabricOptions long_path = options(1);
  long_path.ports[0].path = "/" + std::string(107, 'x');
  EXPECT_EQ(error_of([&] { Fabric{long_path}; }),
            "socket \"/" + std::string(59, 'x') + "...\": found 108 bytes, allowed are 1 to 107");

  FabricOptions twice = options(2);
  twice.ports[1].name = twice.ports[0].name;
  EXPECT_EQ(error_of([&] { Fabric{twice}; }),
            "fabric: found two ports called \"h0/nic0\"; names must be unique");

  FabricOptions neither = options(1);
  neither.ports[0].path.clear();
  EXPECT_EQ(error_of([&] { Fabric{neither}; }),
            "fabric: port \"h0/nic0\": needs either a path or an open socket");
  neither.ports[0].fd = 999'999;
  EXPECT_EQ(error_of([&] { Fabric{neither}; }),
            "fabric: port \"h0/nic0\": file descriptor 999999 is not open");
}

}  // namespace
