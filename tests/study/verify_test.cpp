// The output of tools, and the path that it fits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/predict.hpp"
#include "src/common/error.hpp"
#include "src/import/machine.hpp"
#include "src/report/verify_report.hpp"
#include "src/study/verify.hpp"
#include "src/topology/topology_json.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/simulation.hpp"

namespace gdr {
namespace {

const std::string project = GDR_PROJECT_DIR;

const ModelLibrary& library() {
  static const ModelLibrary models(project + "/models");
  return models;
}

using study::Figure;
using study::read_figures;

TEST(Measured, ReadsPerftest) {
  const auto figures = read_figures(
      " initializing CUDA\n                    RDMA_Read BW Test\n Number of qps   : 4\n"
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
      " 65536      5000             11700.10            11444.09\t\t   0.18\n",
      "t");
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].tool, "ib_read_bw");
  EXPECT_EQ(figures[0].operation, Operation::read);
  EXPECT_EQ(figures[0].queue_pairs, 4);
  EXPECT_EQ(figures[0].gpu_memory, true);
  EXPECT_NEAR(figures[0].bandwidth->gigabytes_per_second(), 12.0, 0.001)
      << "perftest's MB are binary";
  const auto gigabits = read_figures(
      "RDMA_Write Bidirectional BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] "
      "MsgRate[Mpps]\n 1048576 1000 390.00 380.0 0.04\n",
      "t");
  EXPECT_NEAR(gigabits.at(0).bandwidth->gigabytes_per_second(), 47.5, 0.001);
  EXPECT_TRUE(gigabits[0].bidirectional);
  EXPECT_EQ(gigabits[0].gpu_memory, false) << "without --use_cuda it is host memory";
  const auto latency = read_figures(
      "RDMA_Write Latency Test\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec] "
      "   t_avg[usec]\n 8       1000          1.50           5.83         1.55     \t       1.56\n",
      "t");
  EXPECT_NEAR(latency.at(0).latency->us(), 1.55, 1e-9);
}

std::string gdsio_line(const std::string& io, const std::string& way, const std::string& threads) {
  return "IoType: " + io + " XferType: " + way + " Threads: " + threads +
         " DataSetSize: 104837120/104857600(KiB) IOSize: 1024(KiB) Throughput: 6.622534 GiB/sec, "
         "Avg_Latency: 589.4 usecs ops: 102380 total_time 15.1 secs\n";
}

TEST(Measured, ReadsTheWaysOfGdsio) {
  for (const char* way : {"GPUD", "GPUD_ASYNC", "GPU_BATCH", "GPU_BATCH_STREAM"})
    EXPECT_EQ(read_figures(gdsio_line("READ", way, "4"), "t").at(0).peer_to_peer, true) << way;
  for (const char* way : {"CPU_GPU", "CPU_ASYNC_GPU", "CPU_CACHED_GPU"}) {
    const Figure figure = read_figures(gdsio_line("READ", way, "4"), "t").at(0);
    EXPECT_EQ(figure.peer_to_peer, false) << way;
    EXPECT_EQ(figure.gpu_memory, true) << way;
  }
  const Figure host = read_figures(gdsio_line("RANDREAD", "CPUONLY", "65536"), "t").at(0);
  EXPECT_EQ(host.gpu_memory, false);
  EXPECT_EQ(host.operation, Operation::read) << "RANDREAD was taken for a write";
  EXPECT_EQ(host.threads, 65536);
  EXPECT_EQ(read_figures(gdsio_line("RANDWRITE", "GPUD", "1"), "t").at(0).operation,
            Operation::write);
}

std::string refusal_of_figures(const std::string& text) {
  try {
    (void)read_figures(text, "gdsio.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Measured, SaysWhatIsWrongInALineOfGdsio) {
  const std::string good = gdsio_line("READ", "GPUD", "4");
  EXPECT_EQ(refusal_of_figures(good + gdsio_line("READ", "GPUX", "4")),
            "gdsio.txt: line 2: XferType \"GPUX\" of gdsio: it is not known which path the data "
            "took; known are GPUD, GPUD_ASYNC, GPU_BATCH, GPU_BATCH_STREAM (GPUDirect "
            "Storage), CPU_GPU, CPU_ASYNC_GPU, CPU_CACHED_GPU (through host memory) and CPUONLY; "
            "leave the line out, or measure with -x 0, 1 or 2");
  for (const char* threads : {"0", "-1", "65537", "many"})
    EXPECT_EQ(refusal_of_figures(gdsio_line("READ", "GPUD", threads)),
              std::string("gdsio.txt: line 1: Threads \"") + threads +
                  "\" of gdsio: 1 to 65536, as many as -w gave it; what the throughput means "
                  "depends on them");
  EXPECT_EQ(refusal_of_figures(gdsio_line("VERIFY", "GPUD", "4")),
            "gdsio.txt: line 1: IoType \"VERIFY\" of gdsio: allowed are READ, WRITE, RANDREAD and "
            "RANDWRITE; give the line as gdsio printed it");
}

TEST(Measured, ReadsTheOtherTools) {
  const auto osu = read_figures(
      "# OSU MPI-CUDA Bi-Directional Bandwidth Test v5.9\n# Send Buffer on DEVICE (D) and Receive "
      "Buffer on DEVICE (D)\n# Size      Bandwidth (MB/s)\n4194304     23500.25\n",
      "t");
  EXPECT_NEAR(osu.at(0).bandwidth->gigabytes_per_second(), 23.50025, 1e-6);
  EXPECT_TRUE(osu[0].bidirectional);
  EXPECT_EQ(osu[0].gpu_memory, true);
  const auto nccl = read_figures(
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "   134217728      33554432     float     sum      -1   5500.1   24.40   24.41      0   "
      "5499.0   24.41   24.41      0\n# Avg bus bandwidth    : 24.4\n",
      "t");
  ASSERT_EQ(nccl.size(), 1U);
  EXPECT_NEAR(nccl[0].bandwidth->gigabytes_per_second(), 48.82, 1e-6) << "both directions";
  const auto bandwidth = read_figures(
      "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth "
      "(GB/s)\n           0         1\n 0       N/A    276.07\n 1    276.36       N/A\n",
      "t");
  ASSERT_EQ(bandwidth.size(), 2U);
  EXPECT_EQ(bandwidth[0].gpus, std::pair(1, 0)) << "the row reads from the column";
  const auto storage = read_figures(
      "IoType: READ XferType: GPUD Threads: 1 DataSetSize: 5/5(KiB) IOSize: 1024(KiB) Throughput: "
      "2.000000 GiB/sec, Avg_Latency: 1.0 usecs\n",
      "t");
  EXPECT_NEAR(storage.at(0).bandwidth->gigabytes_per_second(), 2.147483648, 1e-9);
  EXPECT_EQ(storage[0].size, parse_bytes("1MiB"));
  EXPECT_THROW(read_figures("nothing\n1 2 3 4\n", "t"), InputError);
  EXPECT_THROW(read_figures("RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW "
                            "average[Gb/sec]\n 64 1 nan -5\n",
                            "t"),
               InputError);
}

std::string perftest(double gigabits) {
  return "initializing CUDA\nRDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW "
         "average[Gb/sec] MsgRate[Mpps]\n 4194304 5000 " +
         std::to_string(gigabits) + " " + std::to_string(gigabits) + " 0.01\n";
}

study::Fit fit_one(double gigabytes, const std::vector<Setting>& settings = {}) {
  const Topology topology = load_topology(project + "/topologies/servers/dgx-a100.json", settings);
  return study::fit(sim::simulator(), topology, library(),
                    read_figures(perftest(gigabytes * 8), "t"), {})
      .at(0);
}

/// "Half of the port rate" halves each NIC's own rate: a slower peer stays the slower one.
TEST(Verify, HalfThePortRateIsOfEachNicsOwn) {
  std::vector<Setting> slow_peer;
  for (int nic = 0; nic < 8; ++nic)
    slow_peer.push_back({"h1/nic" + std::to_string(nic) + ".port_rate", "100Gb/s"});
  const Topology topology =
      load_topology(project + "/topologies/clusters/two-dgx-a100.json", slow_peer);
  const study::Fit fit =
      study::fit(sim::simulator(), topology, library(), read_figures(perftest(6.2 * 8), "t"), {})
          .at(0);
  const auto rate_of = [&](study::Change change) {
    for (const study::Candidate& one : fit.candidates)
      if (one.path == PathKind::gdr && one.condition.change == change) return one.predicted / 1e9;
    return 0.0;
  };
  // 100 Gb/s carry 12.41 GB/s of payload at the fabric's MTU.
  EXPECT_NEAR(rate_of(study::Change::none), 12.41, 0.02);
  EXPECT_NEAR(rate_of(study::Change::half_port_rate), 6.205, 0.02);
}

/// The simulator's own predictions, taken as measurements, are each traced back to their condition.
TEST(Verify, TellsThePathThatAFigureCameFrom) {
  const auto as_is = fit_one(24.8);
  EXPECT_EQ(as_is.candidates.at(0).path, PathKind::gdr);
  EXPECT_EQ(as_is.candidates.at(0).condition, study::Condition{});
  EXPECT_NE(as_is.sureness, study::Sureness::none);
  const auto staged = fit_one(20.3);
  EXPECT_EQ(staged.candidates.at(0).path, PathKind::staged);
  EXPECT_EQ(staged.candidates.at(0).condition, study::Condition{});
  EXPECT_NE(report::next_text(staged).find("gdr doctor"), std::string::npos);
  const auto half_rate = fit_one(12.41);
  EXPECT_EQ(half_rate.candidates.at(0).condition.change, study::Change::half_port_rate)
      << report::verdict_text(half_rate);
  const auto idle = fit_one(3.3);
  EXPECT_EQ(idle.candidates.at(0).condition.change, study::Change::idle_speed)
      << report::verdict_text(idle);
  const auto nothing = fit_one(0.05);
  EXPECT_EQ(nothing.sureness, study::Sureness::none);
  EXPECT_NE(report::verdict_text(nothing).find("Fits no path"), std::string::npos);
  EXPECT_NE(report::verdict_text(nothing).find("The topology gives 24.82 GB/s by gdr"),
            std::string::npos)
      << "what would be normal: " << report::verdict_text(nothing);
  EXPECT_TRUE(study::is_downgrade(nothing));
  EXPECT_FALSE(study::is_downgrade(as_is));
}

TEST(Verify, APathThatTheVerdictBlocksIsLeftOutAndNamed) {
  const Topology topology = load_topology(project + "/topologies/servers/dgx-a100.json",
                                          {{"iommu", "translate"}, {"maps_peer_memory", "false"}});
  const auto fit =
      study::fit(sim::simulator(), topology, library(), read_figures(perftest(100), "t"), {}).at(0);
  ASSERT_FALSE(fit.candidates.empty());
  for (const auto& candidate : fit.candidates) EXPECT_NE(candidate.path, PathKind::gdr);
  EXPECT_NE(report::verdict_text(fit).find("The verdict blocks gdr here (iommu-translating)."),
            std::string::npos)
      << report::verdict_text(fit);
}

TEST(Verify, HostMemoryProvesNothingAboutGpus) {
  std::string text = perftest(196);
  text.erase(0, text.find('\n') + 1);
  const Topology topology = load_topology(project + "/topologies/servers/dgx-a100.json", {});
  const auto fit =
      study::fit(sim::simulator(), topology, library(), read_figures(text, "t"), {}).at(0);
  EXPECT_EQ(fit.candidates.at(0).path, PathKind::rdma);
  EXPECT_NE(report::next_text(fit).find("proves nothing about GPUDirect RDMA"), std::string::npos);
}

std::string gdsio(const char* operation, const char* type, int threads, double gigabytes) {
  return fmt::format(
      "IoType: {} XferType: {} Threads: {} DataSetSize: 1048576/1048576(KiB) IOSize: 1024(KiB) "
      "Throughput: {:.6f} GiB/sec, Avg_Latency: 9.0 usecs ops: 1024 total_time 1.0 secs\n",
      operation, type, threads, gigabytes * 1e9 / 1073741824.0);
}

study::Fit fit_storage(const std::string& text, const study::Ends& ends = {},
                       const std::vector<Setting>& settings = {}) {
  const Topology topology = load_topology(project + "/topologies/servers/dgx-a100.json", settings);
  return study::fit(sim::simulator(), topology, library(), read_figures(text, "t"), ends).at(0);
}

double predicted_storage(PathKind path, int depth, std::size_t drives) {
  const Topology topology = load_topology(project + "/topologies/servers/dgx-a100.json");
  const Graph graph(topology);
  const Hardware hardware(graph, library());
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < drives; ++i) {
    Transfer transfer;
    transfer.path = path;
    transfer.from = devices_of_kind(topology, DeviceKind::nvme).at(i);
    transfer.to = find_device(topology, "h0/gpu0");
    transfer.operation = Operation::read;
    transfer.size = parse_bytes("1MiB");
    transfers.push_back(transfer);
  }
  return sim::predict_streams(sim::simulator(), hardware, transfers, {depth, 1, false})
      .sum.gigabytes_per_second();
}

TEST(Verify, StorageByItsPath) {
  const double direct = predicted_storage(PathKind::gds, 4, 1);
  const auto gds = fit_storage(gdsio("READ", "GPUD", 4, direct));
  ASSERT_FALSE(gds.candidates.empty()) << report::verdict_text(gds);
  EXPECT_EQ(gds.from, "h0/nvme0");
  EXPECT_EQ(gds.to, "h0/gpu0");
  EXPECT_NEAR(gds.candidates[0].deviation, 0, 0.01);
  EXPECT_FALSE(study::is_downgrade(gds));
  const std::size_t drives =
      devices_of_kind(load_topology(project + "/topologies/servers/dgx-a100.json"),
                      DeviceKind::nvme)
          .size();
  ASSERT_GT(drives, 1U);
  const auto all = fit_storage(gdsio(
      "READ", "GPUD", 64, predicted_storage(PathKind::gds, 64 / static_cast<int>(drives), drives)));
  EXPECT_EQ(report::condition_text(all.candidates.at(0).condition),
            fmt::format("all {} drives", drives))
      << report::verdict_text(all);
  EXPECT_FALSE(study::is_downgrade(all)) << "several drives are no downgrade";
  const auto written = fit_storage(gdsio("WRITE", "GPUD", 4, 2.0));
  EXPECT_EQ(written.from, "h0/gpu0");
  EXPECT_EQ(written.to, "h0/nvme0");
}

TEST(Verify, StorageThroughHostMemory) {
  const auto asked =
      fit_storage(gdsio("READ", "CPU_GPU", 4, predicted_storage(PathKind::staged, 4, 1)));
  EXPECT_EQ(asked.candidates.at(0).path, PathKind::staged);
  EXPECT_FALSE(study::is_downgrade(asked)) << "it was asked for";
  const auto host = fit_storage(gdsio("READ", "CPUONLY", 4, 3.0));
  ASSERT_FALSE(host.candidates.empty());
  for (const auto& candidate : host.candidates) EXPECT_EQ(candidate.path, PathKind::dma);
  EXPECT_EQ(host.to, "host memory");
  const auto named = fit_storage(gdsio("READ", "GPUD", 1, 1.0), {"h0/nvme3", "h0/gpu5"});
  EXPECT_EQ(named.from, "h0/nvme3");
  EXPECT_EQ(named.to, "h0/gpu5");
  for (const auto& candidate : named.candidates)
    EXPECT_EQ(candidate.condition, study::Condition{}) << "one drive was named";
  const Topology without = load_topology(project + "/topologies/servers/p4d.json");
  const auto none = study::fit(sim::simulator(), without, library(),
                               read_figures(gdsio("READ", "GPUD", 1, 1.0), "t"), {})
                        .at(0);
  EXPECT_EQ(report::verdict_text(none), "The topology shows no drive.");
}

/// A published host: its listings give the topology, and its measurements are compared with
/// predictions.
TEST(Verify, ThePublishedHostMeasuresAsPredicted) {
  if (!test::shared_dir()) GTEST_SKIP() << test::no_shared_dir;
  const std::string folder = *test::shared_dir() + "/corpus/hosts/puget-wrx90/";
  const Topology topology = import_machine({folder + "lspci-tv.txt", folder + "lspci-vvv.txt",
                                            folder + "lscpu.txt", folder + "nvidia-smi-topo-m.txt"},
                                           &library());
  const NamedText text = read_input(folder + "measurements.txt");
  std::size_t p2p = 0;
  for (const auto& fit :
       study::fit(sim::simulator(), topology, library(), read_figures(text.text, text.name), {})) {
    if (!fit.figure.gpus || fit.figure.peer_to_peer != true || !fit.figure.bandwidth) continue;
    ++p2p;
    ASSERT_FALSE(fit.candidates.empty());
    std::printf("%s to %s%s  measured %.2f GB/s  predicted %.2f  deviation %+.1f %%\n",
                fit.from.c_str(), fit.to.c_str(), fit.figure.bidirectional ? " both ways" : "",
                fit.figure.bandwidth->gigabytes_per_second(), fit.candidates[0].predicted * 1e-9,
                fit.candidates[0].deviation * 100);
    EXPECT_EQ(fit.candidates[0].path, PathKind::p2p);
    EXPECT_EQ(fit.candidates[0].condition, study::Condition{});
    EXPECT_NEAR(fit.candidates[0].deviation, 0, 0.1);
  }
  EXPECT_EQ(p2p, 4U);
}

}  // namespace
}  // namespace gdr
