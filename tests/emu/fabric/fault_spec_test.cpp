#include "emu/fabric/fault_spec.hpp"

#include <gtest/gtest.h>

#include "tests/support/fabric_support.hpp"

namespace {

using namespace gdr::fabric;
using namespace gdr::fabric::test;
using namespace gdr::literals;

std::vector<PortOptions> four_ports() {
  std::vector<PortOptions> ports(4);
  ports[0].name = "h0/nic0";
  ports[1].name = "h0/nic1";
  ports[2].name = "h1/nic0";
  ports[3].name = "h1/nic1";
  return ports;
}

std::vector<PortOptions> with(std::string_view spec) {
  auto ports = four_ports();
  apply_faults(spec, ports);
  return ports;
}

TEST(FaultSpec, TheExampleOfTheDocument) {
  auto expected = four_ports();
  expected[0].tx = expected[0].rx = {.delay = 5_us, .loss = {0.01}, .reorder = {0.01}};
  expected[3].tx = {.down_after = 1000};
  EXPECT_EQ(with("h0/nic0:loss=1%,reorder=1%,delay=5us;h1/nic1.tx:down-after=1000"), expected);
}

TEST(FaultSpec, EveryKey) {
  const LinkOptions all{.rate = 25_GBps,
                        .queue = 64_KiB,
                        .delay = 5_us,
                        .loss = {0.01},
                        .duplicate = {0.025},
                        .reorder = {0.03},
                        .reorder_by = 100_us,
                        .corrupt = {1},
                        .mark = {0},
                        .pause_at = gdr::Duration{2},
                        .pause_for = gdr::parse_duration("10ms"),
                        .down_at = gdr::Duration{3},
                        .down_after = 7,
                        .down_for = gdr::Duration{1},
                        .down_frames = 9,
                        .roce_only = true};
  const auto ports = with(
      " h0/nic0.rx : rate=200Gb/s, queue=64KiB,delay=5us,loss=1%,duplicate=2.5 "
      "%,reorder=3%,reorder-by=100us,corrupt=100%,mark=0,"
      "pause-at=2s,pause-for=10ms,down-at=3s,down-after=7,down-for=1s,down-frames=9,only=roce ");
  EXPECT_EQ(ports[0].rx, all);
  EXPECT_EQ(ports[0].tx, LinkOptions{});
}

TEST(FaultSpec, Patterns) {
  struct Case {
    const char* where;
    std::vector<bool> hit;
  };
  const Case cases[] = {{"*", {true, true, true, true}},
                        {"*/*", {true, true, true, true}},
                        {"h1/*", {false, false, true, true}},
                        {"*/nic1", {false, true, false, true}},
                        {"h0/nic1", {false, true, false, false}}};
  for (const Case& c : cases) {
    const auto ports = with(std::string(c.where) + ":delay=1us");
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(ports[i].tx.delay == 1_us, c.hit[i]) << c.where << ' ' << i;
  }
}

TEST(FaultSpec, LaterItemsWinAndEarlierOnesStay) {
  const auto ports = with("*:loss=1%,delay=1us;h0/nic0.tx:loss=0");
  EXPECT_EQ(ports[0].tx, (LinkOptions{.delay = 1_us}));
  EXPECT_EQ(ports[0].rx, (LinkOptions{.delay = 1_us, .loss = {0.01}}));
}

TEST(FaultSpec, ErrorsNamePlaceFoundAndAllowed) {
  struct Case {
    const char* spec;
    const char* error;
  };
  const std::string keys =
      "rate, queue, delay, loss, duplicate, reorder, reorder-by, corrupt, mark, pause-at, "
      "pause-for, down-at, down-after, "
      "down-for, "
      "down-frames, only";
  const std::string names =
      "h0/nic0, h0/nic1, h1/nic0, h1/nic1; * for a host or a NIC; add .tx or .rx for one  "
      "direction";
  const std::string unknown_key = "faults: at item 1 (*): found \"los\", allowed " + keys;
  const std::string unknown_port = "faults: at item 2: found \"h2/nic0\", allowed " + names;
  const Case cases[] = {
      {"", "faults: at item 1: found nothing, allowed PORT:KEY=VALUE,..."},
      {"*:delay=1us;", "faults: at item 2: found nothing, allowed PORT:KEY=VALUE,..."},
      {"h0/nic0", "faults: at item 1: found \"h0/nic0\", allowed PORT:KEY=VALUE,..."},
      {"*:delay=1us;h2/nic0:loss=1%", unknown_port.c_str()},
      {"*:los=1%", unknown_key.c_str()},
      {"*:loss", "faults: at item 1 (*): found \"loss\" without a value, allowed loss=VALUE"},
      {"*:loss=",
       "faults: at item 1 (*), loss: found nothing, allowed a share of the frames from 0% to 100%"},
      {"*:loss=1",
       "faults: at item 1 (*), loss: found \"1\", allowed a share of the frames from 0% to 100%"},
      {"*:loss=100.1%",
       "faults: at item 1 (*), loss: found \"100.1%\", allowed a share of the frames from 0% to "
       "100%"},
      {"*:loss=-1%",
       "faults: at item 1 (*), loss: found \"-1%\", allowed a share of the frames from 0% to 100%"},
      {"*:loss=nan%",
       "faults: at item 1 (*), loss: found \"nan%\", allowed a share of the frames from 0% to "
       "100%"},
      {"h0/*.tx:delay=5",
       "faults: at item 1 (h0/*.tx), delay: \"5\" is not a time: the unit is missing; write a "
       "number and one of ps, ns, us, ms, "
       "s, min, h, d"},
      {"*:down-after=-1",
       "faults: at item 1 (*), down-after: found \"-1\", allowed a number of frames, 0 to "
       "18446744073709551615"},
      {"*:down-after=1.5",
       "faults: at item 1 (*), down-after: found \"1.5\", allowed a number of frames, 0 to "
       "18446744073709551615"},
      {"*:rate=0", "faults: at item 1 (*), rate: found \"0\", allowed at least 1B/s"},
      {"*:only=tcp", "faults: at item 1 (*), only: found \"tcp\", allowed roce, all"},
      {"h1/nic0.rx:queue=1KiB",
       "faults: h1/nic0.rx: found queue without rate, allowed queue together with rate or "
       "pause-at"},
      {"h1/nic0:pause-at=1s",
       "faults: h1/nic0.tx: found pause-at without pause-for, allowed both together"},
      {"h1/nic0:pause-for=1s",
       "faults: h1/nic0.tx: found pause-for without pause-at, allowed both together"},
      {"h1/nic0:down-for=1s",
       "faults: h1/nic0.tx: found down-for, allowed down-for or down-frames together with down-at "
       "or down-after"},
      {"*:reorder=1%,reorder-by=0",
       "faults: h0/nic0.tx: found reorder-by=0, allowed more than 0 with reorder"},
      {"*:only=a\nb", "faults: at item 1 (*), only: found \"a\\x0ab\", allowed roce, all"},
  };
  for (const Case& c : cases) {
    auto ports = four_ports();
    const std::string error = error_of([&] { apply_faults(c.spec, ports); });
    EXPECT_EQ(error, c.error) << c.spec;
    EXPECT_EQ(ports, four_ports()) << "an error changes nothing: " << c.spec;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

}  // namespace
