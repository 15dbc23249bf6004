#include <gtest/gtest.h>

#include "emu/fabric/tcp.hpp"
#include "tests/support/fabric_support.hpp"

namespace gdr::fabric::test {
namespace {

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
  for (std::size_t i = 0; i < TcpCounter::max_flows + 3; ++i)
    counter.count(tcp_frame({1, 10, false, static_cast<std::uint16_t>(i)}));
  EXPECT_EQ(counter.flows().size(), TcpCounter::max_flows);
  EXPECT_EQ(counter.left_out(), 3U);
}

}  // namespace
}  // namespace gdr::fabric::test
