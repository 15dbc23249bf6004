#include <gtest/gtest.h>

#include "emu/fabric/tcp.hpp"
#include "fabric_support.hpp"

namespace gdr::fabric::test {
namespace {

struct Segment {
  std::uint32_t sequence = 1000;
  std::size_t payload = 100;
  bool syn = false;
  std::uint16_t from_port = 40000;
  std::uint8_t options = 12;  // time stamps
};

Frame tcp_frame(const Segment& segment) {
  const std::size_t header = 20U + segment.options;
  const std::size_t total = 20 + header + segment.payload;
  Frame frame = plain_frame(mac(2), mac(1), std::max<std::size_t>(60, ethernet_header_bytes + total));
  store16(frame, 12, 0x0800);
  const std::size_t ip = ethernet_header_bytes;
  std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(ip), 20 + header, std::uint8_t{0});
  frame[ip] = 0x45;
  store16(frame, ip + 2, static_cast<std::uint16_t>(total));
  frame[ip + 8] = 64;
  frame[ip + 9] = 6;
  store32(frame, ip + 12, 0x0a000001U);
  store32(frame, ip + 16, 0x0a000002U);
  const std::size_t tcp = ip + 20;
  store16(frame, tcp, segment.from_port);
  store16(frame, tcp + 2, 18515);
  store32(frame, tcp + 4, segment.sequence);
  frame[tcp + 12] = static_cast<std::uint8_t>(header / 4 << 4U);
  frame[tcp + 13] = segment.syn ? 0x02 : 0x10;
  return frame;
}

TcpFlow only(const TcpCounter& counter) {
  const auto flows = counter.flows();
  EXPECT_EQ(flows.size(), 1U);
  return flows.front();
}

TEST(FabricTcp, CountsNewBytesOnce) {
  TcpCounter counter;
  counter.count(tcp_frame({1000, 0, true}));
  counter.count(tcp_frame({1001, 100}));
  counter.count(tcp_frame({1101, 50}));
  counter.count(tcp_frame({1001, 100}));  // again
  counter.count(tcp_frame({1101, 80}));   // 50 again, 30 new
  counter.count(tcp_frame({1181, 0}));    // an acknowledgement
  EXPECT_EQ(only(counter).segments, 6U);
  EXPECT_EQ(only(counter).payload.count, 180U);
  EXPECT_EQ(only(counter).repeated_payload.count, 150U);
}

TEST(FabricTcp, PaddingAndOptionsAreNoPayload) {
  TcpCounter counter;
  counter.count(tcp_frame({1000, 1, false, 40000, 0}));  // 41 bytes of IP in a frame of 60
  EXPECT_EQ(only(counter).payload.count, 1U);
}

TEST(FabricTcp, SequenceNumbersWrap) {
  TcpCounter counter;
  counter.count(tcp_frame({0xffffff00U, 0x180}));
  counter.count(tcp_frame({0x80, 0x100}));
  counter.count(tcp_frame({0xffffff00U, 0x180}));
  EXPECT_EQ(only(counter).payload.count, 0x280U);
  EXPECT_EQ(only(counter).repeated_payload.count, 0x180U);
}

TEST(FabricTcp, TheSamePortsMayOpenAgain) {
  TcpCounter counter;
  counter.count(tcp_frame({5000, 0, true}));
  counter.count(tcp_frame({5001, 10}));
  counter.count(tcp_frame({100, 0, true}));
  counter.count(tcp_frame({101, 20}));
  EXPECT_EQ(only(counter).payload.count, 30U);
}

TEST(FabricTcp, ConnectionsAreApartAndOtherFramesAreNone) {
  TcpCounter counter;
  counter.count(tcp_frame({1, 10, false, 40000}));
  counter.count(tcp_frame({1, 20, false, 40001}));
  counter.count(plain_frame(mac(2), mac(1)));
  counter.count(roce_frame({}));
  Frame cut = tcp_frame({1, 100, false, 40002});
  cut.resize(40);
  counter.count(cut);
  ASSERT_EQ(counter.flows().size(), 2U);
  EXPECT_EQ(counter.flows()[0].payload.count, 10U);
  EXPECT_EQ(counter.flows()[1].payload.count, 20U);
}

TEST(FabricTcp, ManyConnectionsAreLeftOut) {
  TcpCounter counter;
  for (std::size_t i = 0; i < TcpCounter::max_flows + 3; ++i) counter.count(tcp_frame({1, 10, false, static_cast<std::uint16_t>(i)}));
  EXPECT_EQ(counter.flows().size(), TcpCounter::max_flows);
  EXPECT_EQ(counter.left_out(), 3U);
}

}  // namespace
}  // namespace gdr::fabric::test
