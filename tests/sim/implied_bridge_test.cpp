// Bridges that only stated distances imply: what their links are is not known, so they bound
// nothing, and they are not the link of any device.
#include "src/common/json.hpp"
#include "tests/support/simulation.hpp"

namespace gdr::sim {
namespace {

using namespace gdr::literals;

/// Three GPUs below one switch of unknown place, two of them below a switch of their own.
json::Value implied_switches() {
  return json::parse(R"({"format": 1, "name": "implied", "hosts": [{"name": "h0",
    "software": {"iommu": "off"},
    "sockets": [{"name": "cpu0", "model": "epyc-milan"}],
    "numa_nodes": [{"name": "numa0", "socket": "cpu0"}],
    "devices": [
      {"name": "gpu0", "kind": "gpu", "model": "a100-pcie-40gb", "under": "numa0", "place_known": false},
      {"name": "gpu1", "kind": "gpu", "model": "a100-pcie-40gb", "under": "numa0", "place_known": false},
      {"name": "gpu2", "kind": "gpu", "model": "a100-pcie-40gb", "under": "numa0", "place_known": false}],
    "distances": [
      {"from": "gpu0", "to": "gpu1", "distance": "PIX"},
      {"from": "gpu0", "to": "gpu2", "distance": "PXB"},
      {"from": "gpu1", "to": "gpu2", "distance": "PXB"}]}]})",
                     "implied");
}

double copy_rate(const Lab& lab, const std::string& gpu) {
  Transfer copy;
  copy.path = PathKind::copy;
  copy.size = 64_MiB;
  set_ends(lab.topology, find_end(lab.topology, gpu), find_end(lab.topology, "h0/numa0"), copy);
  return lab.run(copy).bandwidth.gigabytes_per_second();
}

TEST(ImpliedBridge, ItsLinkIsNoDevicesLink) {
  const Lab lab(implied_switches(), {});
  // Gen4 x16, 256 B of payload: 29.77 GB/s of TLPs x 256/280.
  for (const char* gpu : {"h0/gpu0", "h0/gpu1", "h0/gpu2"})
    expect_close(std::string("copy from ") + gpu + ", GB/s", 27.22, copy_rate(lab, gpu), 0.001);
}

TEST(ImpliedBridge, ASlowLinkOfOneDeviceDoesNotSlowAnother) {
  const Lab lab(implied_switches(), {"h0/gpu0.link=gen3x4"});
  EXPECT_LT(copy_rate(lab, "h0/gpu0"), 4);
  expect_close("copy from h0/gpu1, GB/s", 27.22, copy_rate(lab, "h0/gpu1"), 0.001);
}

}  // namespace
}  // namespace gdr::sim
