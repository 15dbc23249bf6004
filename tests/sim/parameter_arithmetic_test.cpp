#include <fmt/format.h>

#include "tests/support/simulation.hpp"

// Single terms of the model compared with arithmetic: no other test fails when one of these is
// dropped or scaled.

namespace gdr::sim {
namespace {

using namespace gdr::literals;

/// The latency in ns of one transfer of the lab, with another library than the shipped one.
double latency_ns(const Lab& lab, const ModelLibrary& library, const Transfer& transfer) {
  const Hardware hardware(lab.graph, library);
  return predict_message(simulator(), hardware, transfer).latency.ns();
}

template <typename Edit>
ModelLibrary with_cpu(const std::string& name, Edit edit) {
  CpuModel cpu = models().cpu(name);
  edit(cpu);
  return models().with(std::move(cpu));
}

/// Two GPUs below root ports of one host bridge, a third below another bridge of the socket.
json::Value root_port_host() {
  return json::parse(R"({
    "format": 1, "name": "root-port-host",
    "hosts": [{
      "name": "h0",
      "sockets": [{"name": "cpu0", "model": "epyc-rome"}],
      "numa_nodes": [{"name": "numa0", "socket": "cpu0"}],
      "devices": [
        {"name": "hb0", "kind": "host-bridge", "under": "numa0"},
        {"name": "hb1", "kind": "host-bridge", "under": "numa0"},
        {"name": "gpu0", "kind": "gpu", "model": "a100-pcie-40gb", "under": "hb0"},
        {"name": "gpu1", "kind": "gpu", "model": "a100-pcie-40gb", "under": "hb0"},
        {"name": "gpu2", "kind": "gpu", "model": "a100-pcie-40gb", "under": "hb1"}
      ]
    }]
  })",
                     "root-port-host");
}

// A TLP from root port to root port crosses both of them and the forwarding between, inside one
// host bridge as between two.
TEST(ParameterArithmetic, ForwardingBetweenRootPortsTakesItsTime) {
  const Lab lab(root_port_host(), {});
  const ModelLibrary library = with_cpu("epyc-rome", [](CpuModel& cpu) {
    cpu.root_port_latency.value = 150_ns;
    cpu.p2p_latency.value = 400_ns;
  });
  const Hardware hardware(lab.graph, library);
  const double gpu = models().gpu("a100-pcie-40gb").pcie_latency.value.ns();
  const auto one_way = [&](const std::string& to) {
    return hardware
        .one_way(*lab.graph.local_route(lab.graph.device(find_device(lab.topology, "gpu0")),
                                        lab.graph.device(find_device(lab.topology, to))))
        .ns();
  };
  const double expected = gpu + 150 + 400 + 150 + gpu;
  expect_close("one way inside one host bridge, ns", expected, one_way("gpu1"), 1e-9);
  expect_close("one way between two host bridges, ns", expected, one_way("gpu2"), 1e-9);
}

// A peer write crosses once: 400 ns more of forwarding are 400 ns more of latency. A peer read
// crosses with its request and with its data.
TEST(ParameterArithmetic, ForwardingDelaysWritesOnceAndReadsTwice) {
  const Lab lab(root_port_host(), {});
  const auto with_forwarding = [](Duration time) {
    return with_cpu("epyc-rome", [&](CpuModel& cpu) { cpu.p2p_latency.value = time; });
  };
  const ModelLibrary none = with_forwarding({});
  const ModelLibrary slow = with_forwarding(400_ns);
  for (const std::string to : {"gpu1", "gpu2"}) {
    const auto added = [&](Operation operation) {
      const Transfer t = lab.transfer("gpu0", to, PathKind::p2p, 4_KiB, operation);
      return latency_ns(lab, slow, t) - latency_ns(lab, none, t);
    };
    expect_close("write to " + to + ", ns more", 400, added(Operation::write), 1e-6);
    expect_close("read by " + to + ", ns more", 800, added(Operation::read), 1e-6);
  }
}

// memory_latency is a round trip. A posted write is visible after half of it, since nothing comes
// back; a read waits for all of it.
TEST(ParameterArithmetic, WritesWaitForHalfOfTheMemorysRoundTrip) {
  const Lab lab(two_switch_host(), {});
  const auto with_memory = [](Duration time) {
    return with_cpu("epyc-rome", [&](CpuModel& cpu) { cpu.memory_latency.value = time; });
  };
  const ModelLibrary fast = with_memory(100_ns);
  const ModelLibrary slow = with_memory(700_ns);
  const auto added = [&](HostEnd host_end) {
    Transfer t = lab.transfer("nic0", "nic0", PathKind::dma, 64_B);
    t.host_end = host_end;
    return latency_ns(lab, slow, t) - latency_ns(lab, fast, t);
  };
  expect_close("DMA write of a NIC to memory, ns more", 300, added(HostEnd::to), 1e-6);
  expect_close("DMA read of memory by a NIC, ns more", 600, added(HostEnd::from), 1e-6);
}

// A socket has 4 MiB under way. With 5 ms of wire each way that window opens every 10 ms and a
// little (the stages at both ends, some tens of us): 4 MiB / 10 ms. The NICs are made to read far
// ahead, or their own buffers would bound this wire.
TEST(ParameterArithmetic, TheSocketsWindowBoundsTcpOverALongWire) {
  const Lab lab("topologies/clusters/two-dgx-a100.json");
  FabricModel fabric = models().fabric(lab.topology.fabric->model);
  fabric.cable_latency.value = {};
  fabric.switch_latency.value = Duration{5e-3} * (1.0 / lab.topology.fabric->switches.value_or(1));
  Transfer t = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::tcp, 64_MiB);
  t.memory = MemoryKind::host;
  t.via = {find_device(lab.topology, "h0/nic0"), find_device(lab.topology, "h1/nic0")};
  NicModel nic = lab.hardware.nic(lab.graph.device(t.via.front()));
  nic.outstanding_reads.value = 64_MiB;
  const ModelLibrary library = models().with(std::move(fabric)).with(std::move(nic));
  const Hardware hardware(lab.graph, library);
  expect_close("wire, ms", 5, hardware.wire_latency().seconds * 1e3, 1e-9);
  const Prediction p = predict(simulator(), hardware, t, {});
  expect_close("tcp, GB/s", 4 * 1048576 / 10e-3 / 1e9, p.bandwidth.gigabytes_per_second(), 2e-2);
}

}  // namespace
}  // namespace gdr::sim
