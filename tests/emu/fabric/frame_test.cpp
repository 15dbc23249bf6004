#include "emu/fabric/frame.hpp"

#include <gtest/gtest.h>

#include "emu/fabric/framing.hpp"
#include "tests/support/fabric_support.hpp"

namespace {

using namespace gdr::fabric;
using namespace gdr::fabric::test;

FrameView ipv4_header(const Frame& frame) { return FrameView(frame).subspan(14, 20); }

TEST(FabricFrame, Addresses) {
  const Frame frame = plain_frame(mac(2), mac(1));
  EXPECT_EQ(destination_of(frame), mac(2));
  EXPECT_EQ(source_of(frame), mac(1));
  EXPECT_TRUE(is_multicast(broadcast));
  EXPECT_FALSE(is_multicast(mac(1)));
  EXPECT_TRUE(is_link_local({0x01, 0x80, 0xc2, 0, 0, 0x0f}));
  EXPECT_FALSE(is_link_local({0x01, 0x80, 0xc2, 0, 0, 0x10}));
}

TEST(FabricFrame, FindsIpBehindTags) {
  Frame frame = roce_frame({});
  ASSERT_TRUE(find_ip(frame));
  EXPECT_EQ(find_ip(frame)->transport, 34U);
  for (std::size_t tags = 1; tags <= 3; ++tags) {
    frame.insert(frame.begin() + 12, {0x81, 0x00, 0x00, 0x05});
    ASSERT_EQ(find_ip(frame).has_value(), tags <= 2) << tags;
    if (tags <= 2) {
      EXPECT_EQ(find_ip(frame)->transport, 34 + 4 * tags);
    }
  }
}

TEST(FabricFrame, LengthsThatDoNotFitAreNoIp) {
  for (const bool ipv6 : {false, true}) {
    const Frame whole = roce_frame({.ipv6 = ipv6});
    ASSERT_TRUE(find_ip(whole));
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(find_ip(FrameView(whole).first(size))) << size;
  }
  Frame short_header = roce_frame({});
  short_header[14] = 0x44;
  EXPECT_FALSE(find_ip(short_header));
}

TEST(FabricFrame, FragmentsHaveNoTransport) {
  Frame frame = roce_frame({});
  store16(frame, 20, 0x4000);  // "do not fragment" is set, but this is not a fragment
  EXPECT_EQ(find_ip(frame)->protocol, 17);
  store16(frame, 20, 0x2000);  // more fragments
  EXPECT_EQ(find_ip(frame)->protocol, 0);
  store16(frame, 20, 0x0001);  // a later fragment
  EXPECT_EQ(find_ip(frame)->protocol, 0);
}

TEST(FabricFrame, MarksWhatCanBeMarked) {
  for (const bool ipv6 : {false, true}) {
    for (std::uint8_t ecn = 0; ecn < 4; ++ecn) {
      Frame frame = roce_frame({.ecn = ecn, .ipv6 = ipv6});
      const Frame before = frame;
      const bool can = ecn == 1 || ecn == 2;
      EXPECT_EQ(mark_congestion(frame), can) << int{ecn} << (ipv6 ? " IPv6" : " IPv4");
      EXPECT_EQ(frame == before, !can);
      EXPECT_EQ(frame == roce_frame({.ecn = 3, .ipv6 = ipv6}), can || ecn == 3);
    }
  }
  Frame arp = plain_frame(broadcast, mac(1));
  EXPECT_FALSE(mark_congestion(arp));
}

TEST(FabricFrame, TheChecksumIsRightAfterMarkingWhateverElseIsInTheHeader) {
  for (std::uint32_t identification = 0; identification < 0x10000; identification += 7) {
    Frame frame = roce_frame({.ecn = static_cast<std::uint8_t>(1 + identification % 2)});
    store16(frame, 18, static_cast<std::uint16_t>(identification));
    store16(frame, 24, 0);
    store16(frame, 24, ipv4_checksum(ipv4_header(frame)));
    ASSERT_TRUE(mark_congestion(frame));
    ASSERT_EQ(ipv4_checksum(ipv4_header(frame)), 0) << identification;
  }
}

TEST(FabricFrame, CorruptionChangesOneByteOfThePayload) {
  const Frame before = roce_frame({.payload = 8});
  std::vector<bool> hit(before.size());
  for (std::uint64_t random = 0; random < 40'000; random += 131) {
    Frame frame = before;
    ASSERT_TRUE(corrupt_payload(frame, random));
    const auto difference = std::mismatch(frame.begin(), frame.end(), before.begin());
    ASSERT_NE(difference.first, frame.end()) << "nothing changed";
    const auto at = static_cast<std::size_t>(difference.first - frame.begin());
    EXPECT_TRUE(std::equal(difference.first + 1, frame.end(), difference.second + 1))
        << "more than one byte";
    hit[at] = true;
  }
  for (std::size_t at = 0; at < hit.size(); ++at) EXPECT_EQ(hit[at], at >= 42) << "byte " << at;
}

TEST(FabricFrame, WithoutPayloadNothingIsCorrupted) {
  Frame frame = plain_frame(mac(2), mac(1), ethernet_header_bytes);
  EXPECT_FALSE(corrupt_payload(frame, 12345));
  frame.push_back(0);
  EXPECT_TRUE(corrupt_payload(frame, 12345));
}

// Each frame follows its length, four bytes in network order.

Frame framed(const Frame& frame) {
  const auto prefix = length_prefix(frame);
  Frame bytes(prefix.begin(), prefix.end());
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  return bytes;
}

Frame length_alone(std::uint32_t length) {
  Frame bytes(4);
  store32(bytes, 0, length);
  return bytes;
}

TEST(FabricFraming, WhateverTheCuts) {
  const Frame first = plain_frame(mac(2), mac(1), 64);
  const Frame second = plain_frame(mac(3), mac(1), 1500);
  Frame stream = framed(first);
  const Frame more = framed(second);
  stream.insert(stream.end(), more.begin(), more.end());
  for (std::size_t cut = 1; cut <= stream.size(); ++cut) {
    FrameDecoder decoder;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += cut) {
      decoder.feed(FrameView(stream).subspan(at, std::min(cut, stream.size() - at)));
      while (auto frame = decoder.next()) frames.push_back(*frame);
    }
    ASSERT_EQ(frames, (std::vector<Frame>{first, second})) << "cut every " << cut;
    EXPECT_FALSE(decoder.mid_frame());
  }
}

TEST(FabricFraming, ALengthOfZeroKeepsTheStep) {
  FrameDecoder decoder;
  decoder.feed(length_alone(0));
  decoder.feed(framed(plain_frame(mac(2), mac(1), 60)));
  EXPECT_EQ(decoder.next(), Frame{});
  EXPECT_EQ(decoder.next()->size(), 60U);
  EXPECT_FALSE(decoder.bad());
}

TEST(FabricFraming, TheLongestFrame) {
  FrameDecoder decoder;
  decoder.feed(framed(Frame(65536, 1)));
  EXPECT_EQ(decoder.next()->size(), 65536U);
  EXPECT_FALSE(decoder.bad());
  for (const std::uint32_t length : {65537U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    FrameDecoder hostile;
    hostile.feed(length_alone(length));
    EXPECT_EQ(hostile.next(), std::nullopt);
    EXPECT_TRUE(hostile.bad()) << length;
    hostile.feed(framed(Frame(60, 1)));
    EXPECT_EQ(hostile.next(), std::nullopt) << "lost framing cannot be repaired";
  }
}

TEST(FabricFraming, HalfAFrame) {
  FrameDecoder decoder;
  EXPECT_FALSE(decoder.mid_frame());
  Frame stream = framed(plain_frame(mac(2), mac(1), 60));
  stream.pop_back();
  decoder.feed(stream);
  EXPECT_EQ(decoder.next(), std::nullopt);
  EXPECT_TRUE(decoder.mid_frame());
}

}  // namespace
