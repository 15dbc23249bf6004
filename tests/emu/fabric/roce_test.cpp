#include "emu/fabric/roce.hpp"

#include <gtest/gtest.h>

#include "tests/support/fabric_support.hpp"

namespace {

using namespace gdr::fabric;
using namespace gdr::fabric::test;
using gdr::Bytes;

constexpr std::uint8_t send_only = 0x04;
constexpr std::uint8_t write_first = 0x06;
constexpr std::uint8_t write_middle = 0x07;
constexpr std::uint8_t read_request = 0x0c;
constexpr std::uint8_t read_response_middle = 0x0e;
constexpr std::uint8_t acknowledge = 0x11;

/// virtual address 0, R_Key 0, DMA length 65,536
constexpr std::initializer_list<std::uint8_t> reth_64k{0, 0, 0, 0, 0, 0, 0, 0,
                                                       0, 0, 0, 0, 0, 1, 0, 0};

TEST(FabricRoce, WhatAWriteSays) {
  const auto packet = parse_roce(roce_frame({.opcode = write_first,
                                             .psn = 0xfffffe,
                                             .qp = 0xabcdef,
                                             .payload = 4096,
                                             .extension = reth_64k}));
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->opcode, write_first);
  EXPECT_EQ(packet->psn, 0xfffffeU);
  EXPECT_EQ(packet->destination_qp, 0xabcdefU);
  EXPECT_EQ(packet->payload, Bytes{4096});
  EXPECT_EQ(packet->dma_length, Bytes{65536});
  EXPECT_FALSE(packet->response);
  EXPECT_EQ(to_string(packet->source), "10.0.0.1");
  EXPECT_EQ(to_string(packet->destination), "10.0.0.2");
}

TEST(FabricRoce, PayloadIsWithoutPadding) {
  EXPECT_EQ(parse_roce(roce_frame({.payload = 61, .padding = 3}))->payload, Bytes{61});
}

TEST(FabricRoce, EthernetPaddingIsNoPayload) {
  Frame frame = roce_frame({.payload = 0});
  frame.resize(frame.size() + 10);
  EXPECT_EQ(parse_roce(frame)->payload, Bytes{0});
}

TEST(FabricRoce, ResponsesAndDatagrams) {
  const auto response = parse_roce(roce_frame({.opcode = read_response_middle, .payload = 1024}));
  EXPECT_TRUE(response->response);
  EXPECT_EQ(response->payload, Bytes{1024});
  const auto ack =
      parse_roce(roce_frame({.opcode = acknowledge, .payload = 0, .extension = {0, 0, 0, 1}}));
  EXPECT_TRUE(ack->response);
  EXPECT_EQ(ack->payload, Bytes{0});
  // DETH: Q_Key, a reserved byte, the source queue pair.
  const auto datagram = parse_roce(
      roce_frame({.opcode = 0x64, .payload = 100, .extension = {0, 0, 0, 1, 0, 0, 0x12, 0x34}}));
  EXPECT_EQ(datagram->source_qp, 0x1234U);
  EXPECT_EQ(datagram->payload, Bytes{100});
}

TEST(FabricRoce, Ipv6) {
  const auto packet = parse_roce(roce_frame({.payload = 256, .ipv6 = true}));
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->payload, Bytes{256});
  EXPECT_EQ(to_string(packet->source), "fd00:0:0:0:0:0:0:1");
}

TEST(FabricRoce, WhatIsNone) {
  EXPECT_FALSE(parse_roce(plain_frame(mac(2), mac(1))));
  Frame other_port = roce_frame({});
  store16(other_port, 36, 4792);
  EXPECT_FALSE(parse_roce(other_port));
  Frame long_datagram = roce_frame({});
  store16(long_datagram, 38, static_cast<std::uint16_t>(load16(long_datagram, 38) + 1));
  EXPECT_FALSE(parse_roce(long_datagram));
  EXPECT_FALSE(parse_roce(roce_frame({.opcode = 0x15})));  // reserved
  EXPECT_FALSE(parse_roce(roce_frame({.opcode = 0x2c})));  // unreliable connections cannot read
  // RETH takes 16 bytes: it does not fit into 15 bytes of payload, but into 16.
  EXPECT_FALSE(parse_roce(roce_frame({.opcode = write_first, .payload = 15})));
  EXPECT_TRUE(parse_roce(roce_frame({.opcode = write_first, .payload = 16})));
}

TEST(FabricRoce, EveryCutOfAFrameIsHarmless) {
  const Frame whole = roce_frame({.opcode = write_first, .payload = 64, .extension = reth_64k});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_roce(FrameView(whole).first(size)));
}

TEST(FabricPsn, OnceAndAgain) {
  PsnWindow window;
  EXPECT_TRUE(window.first_time(100));
  EXPECT_FALSE(window.first_time(100));
  EXPECT_TRUE(window.first_time(102));
  EXPECT_TRUE(window.first_time(101)) << "late, but not seen before";
  EXPECT_FALSE(window.first_time(101));
}

TEST(FabricPsn, Wraps) {
  PsnWindow window;
  for (const std::uint32_t psn : {0xfffffeU, 0xffffffU, 0U, 1U})
    EXPECT_TRUE(window.first_time(psn)) << psn;
  for (const std::uint32_t psn : {0xfffffeU, 0xffffffU, 0U, 1U})
    EXPECT_FALSE(window.first_time(psn)) << psn;
}

TEST(FabricPsn, BothSidesOfTheWindow) {
  for (const std::uint32_t first : {0U, 5U, 0xffff00U}) {
    const auto psn = [&](std::uint32_t offset) { return (first + offset) & 0xffffffU; };
    PsnWindow inside;
    (void)inside.first_time(psn(0));
    (void)inside.first_time(psn(PsnWindow::size - 1));
    EXPECT_FALSE(inside.first_time(psn(0))) << "65,535 back: a repetition";
    PsnWindow outside;
    (void)outside.first_time(psn(0));
    (void)outside.first_time(psn(PsnWindow::size));
    EXPECT_TRUE(outside.first_time(psn(0))) << "65,536 back: a new connection";
  }
}

TEST(FabricPsn, SlidingForgetsOnlyWhatItMust) {
  PsnWindow window;
  for (std::uint32_t psn = 0; psn < 200'000; psn += 2) ASSERT_TRUE(window.first_time(psn));
  for (std::uint32_t psn = 200'000 - 2000; psn < 200'000; ++psn)
    ASSERT_EQ(window.first_time(psn), psn % 2 == 1) << psn;
}

TEST(FabricRoceCounter, RetransmissionsDoNotCountTwice) {
  RoceCounter counter;
  // Receive 16 packets of 4 KiB, then 12 of them again (the sender goes back), then 4 new ones.
  std::uint32_t psn = 0xfffff8;
  const auto receive = [&](std::uint32_t offset) {
    const std::uint32_t at = (psn + offset) & 0xffffffU;
    if (offset == 0)
      counter.count(
          roce_frame({.opcode = write_first, .psn = at, .payload = 4096, .extension = reth_64k}));
    else counter.count(roce_frame({.opcode = write_middle, .psn = at, .payload = 4096}));
  };
  for (std::uint32_t i = 0; i < 16; ++i) receive(i);
  for (std::uint32_t i = 4; i < 20; ++i) receive(i);
  // Expect 20 packets once, 12 repetitions.
  ASSERT_EQ(counter.flows().size(), 1U);
  const RoceFlow flow = counter.flows().front();
  EXPECT_EQ(flow.packets, 20U);
  EXPECT_EQ(flow.payload, Bytes{20 * 4096});
  EXPECT_EQ(flow.repeated_packets, 12U);
  EXPECT_EQ(flow.repeated_payload, Bytes{12 * 4096});
  EXPECT_EQ(flow.announced, Bytes{65536});
}

TEST(FabricRoceCounter, RequestsAndResponsesHaveTheirOwnNumbers) {
  RoceCounter counter;
  // One side writes with its PSN 7 while it answers a read with the other side's PSN 7.
  counter.count(roce_frame({.opcode = send_only, .psn = 7, .payload = 100}));
  counter.count(roce_frame({.opcode = read_response_middle, .psn = 7, .payload = 1024}));
  counter.count(
      roce_frame({.opcode = acknowledge, .psn = 7, .payload = 0, .extension = {0, 0, 0, 1}}));
  const auto flows = counter.flows();
  ASSERT_EQ(flows.size(), 2U);
  EXPECT_EQ(flows[0].payload, Bytes{100});
  EXPECT_EQ(flows[1].payload, Bytes{1024});
  EXPECT_TRUE(flows[1].key.response);
  EXPECT_EQ(flows[1].packets, 2U);
  EXPECT_EQ(flows[1].repeated_packets, 0U) << "an acknowledgement is not a repetition";
}

TEST(FabricRoceCounter, FlowsAreApart) {
  RoceCounter counter;
  for (const std::uint8_t from : {std::uint8_t{1}, std::uint8_t{3}}) {
    for (const std::uint32_t qp : {16U, 17U})
      counter.count(roce_frame({.psn = 1, .qp = qp, .payload = 10, .from = from}));
    // Several datagram queue pairs of a host send to one queue pair.
    counter.count(roce_frame({.opcode = 0x64,
                              .psn = 1,
                              .qp = 1,
                              .payload = 10,
                              .extension = {0, 0, 0, 0, 0, 0, 0, 5},
                              .from = from}));
    counter.count(roce_frame({.opcode = 0x64,
                              .psn = 1,
                              .qp = 1,
                              .payload = 10,
                              .extension = {0, 0, 0, 0, 0, 0, 0, 6},
                              .from = from}));
  }
  EXPECT_EQ(counter.flows().size(), 8U);
  for (const RoceFlow& flow : counter.flows()) EXPECT_EQ(flow.payload, Bytes{10});
}

TEST(FabricRoceCounter, AReadIsCountedByWhatItAsksFor) {
  RoceCounter counter;
  counter.count(
      roce_frame({.opcode = read_request, .psn = 3, .payload = 0, .extension = reth_64k}));
  counter.count(
      roce_frame({.opcode = read_request, .psn = 3, .payload = 0, .extension = reth_64k}));
  EXPECT_EQ(counter.flows().front().announced, Bytes{65536});
  EXPECT_EQ(counter.flows().front().payload, Bytes{0});
}

TEST(FabricRoceCounter, TheNumberOfFlowsIsBounded) {
  RoceCounter counter;
  for (std::uint32_t qp = 0; qp <= RoceCounter::max_flows; ++qp)
    counter.count(roce_frame({.qp = qp, .payload = 0}));
  EXPECT_EQ(counter.flows().size(), RoceCounter::max_flows);
  EXPECT_EQ(counter.left_out(), 1U);
}

}  // namespace
