#include "src/hardware/pcie.hpp"

#include "tests/support/simulation.hpp"

// Hand arithmetic of PCIe: the comment above each expectation derives it from the specification's
// numbers.

namespace gdr::sim {
namespace {

using namespace gdr::literals;

// Lanes x rate x code / 8, less the DLLPs' share of models/pcie.
TEST(Pcie, BandwidthForTlpsByGeneration) {
  expect_close("Gen1 x4, GB/s", 4 * 2.5 * 0.8 / 8 * 0.92,
               tlp_bandwidth(models().pcie(1), 4).gigabytes_per_second(), 1e-9);
  expect_close("Gen2 x8, GB/s", 8 * 5.0 * 0.8 / 8 * 0.92,
               tlp_bandwidth(models().pcie(2), 8).gigabytes_per_second(), 1e-9);
  // 8 x 8 GT/s x 128/130 / 8 = 7.877 GB/s; DLLPs take 8 % of it.
  expect_close("Gen3 x8, GB/s", 7.2468, tlp_bandwidth(models().pcie(3), 8).gigabytes_per_second(),
               1e-4);
  // 16 x 16 x 128/130 / 8 = 31.508; 5.5 %.
  expect_close("Gen4 x16, GB/s", 29.7748,
               tlp_bandwidth(models().pcie(4), 16).gigabytes_per_second(), 1e-4);
  // 16 x 32 x 128/130 / 8 = 63.015; 2.5 %.
  expect_close("Gen5 x16, GB/s", 61.4400,
               tlp_bandwidth(models().pcie(5), 16).gigabytes_per_second(), 1e-4);
  // 16 x 64 / 8 = 128 GB/s; 236 of 256 bytes of a FLIT are TLPs.
  expect_close("Gen6 x16, GB/s", 118.0, tlp_bandwidth(models().pcie(6), 16).gigabytes_per_second(),
               1e-9);
}

// A write TLP is 16 bytes of header and 8 of framing around its payload; Gen6 has no framing.
TEST(Pcie, PayloadEfficiencyByMaximumPayload) {
  const auto efficiency = [](int generation, Bytes payload) {
    return 1 / write_traffic(models().pcie(generation), 1_MiB, payload).wire_bytes_per_byte;
  };
  expect_close("Gen3, MPS 128", 128.0 / 152, efficiency(3, 128_B), 1e-9);
  expect_close("Gen4, MPS 256", 256.0 / 280, efficiency(4, 256_B), 1e-9);
  expect_close("Gen5, MPS 512", 512.0 / 536, efficiency(5, 512_B), 1e-9);
  expect_close("Gen6, MPS 256", 256.0 / 272, efficiency(6, 256_B), 1e-9);
}

// A completion has a header of 12 bytes; 4 KiB in pieces of 64 bytes are 64 completions.
TEST(Pcie, CompletionsAndRequests) {
  expect_close("completions of 64 B", 84.0 / 64,
               completion_traffic(models().pcie(3), 4096_B, 64_B).wire_bytes_per_byte, 1e-9);
  expect_close("completions of 256 B", 276.0 / 256,
               completion_traffic(models().pcie(4), 4096_B, 256_B).wire_bytes_per_byte, 1e-9);
  // One request of 24 bytes for 512 bytes of data, and for 4096.
  expect_close("requests, MRRS 512", 24.0 / 512,
               request_traffic(models().pcie(4), 1_MiB, 512_B).wire_bytes_per_byte, 1e-9);
  expect_close("requests, MRRS 4096", 24.0 / 4096,
               request_traffic(models().pcie(4), 1_MiB, 4096_B).wire_bytes_per_byte, 1e-9);
  // 8 bytes still take a whole TLP.
  expect_close("8 B written", (8 + 24) / 8.0,
               write_traffic(models().pcie(4), 8_B, 256_B).wire_bytes_per_byte, 1e-9);
}

TEST(Pcie, Windows) {
  expect_close("64 KiB over 1 us, GB/s", 65.536, read_window(64_KiB, 1_us).gigabytes_per_second(),
               1e-9);
  expect_close("16 KiB over 400 ns, GB/s", 40.96,
               credit_window(16_KiB, 400_ns).gigabytes_per_second(), 1e-9);
}

// One flow over PCIe alone gets the link's payload rate: 29.7748 x 256/280 = 27.223 GB/s below one
// switch.
TEST(Pcie, OneWriteAloneRunsAtThePayloadRate) {
  const Lab lab(two_switch_host(), {});
  const Prediction p = lab.run(lab.transfer("gpu0", "gpu1", PathKind::p2p, 64_MiB));
  expect_close("peer write in one switch, GB/s", 27.223, p.bandwidth.gigabytes_per_second(), 2e-3);
}

// Gen4 x8: half of it. Maximum payload 128: 14.8874 x 128/152 = 12.537.
TEST(Pcie, NarrowLinkAndSmallPayload) {
  const Lab narrow(two_switch_host(), {"h0/gpu1.link=gen4x8"});
  expect_close("x8, GB/s", 13.6116,
               narrow.run(narrow.transfer("gpu0", "gpu1", PathKind::p2p, 64_MiB))
                   .bandwidth.gigabytes_per_second(),
               2e-3);
  const Lab small(two_switch_host(), {"h0/gpu1.link=gen4x8", "h0/gpu1.max_payload=128B"});
  expect_close("x8, MPS 128, GB/s", 12.537,
               small.run(small.transfer("gpu0", "gpu1", PathKind::p2p, 64_MiB))
                   .bandwidth.gigabytes_per_second(),
               2e-3);
}

}  // namespace
}  // namespace gdr::sim
