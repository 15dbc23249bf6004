// What limits a prediction, where explain draws the limit, and what follows for parameters with
// slack.
#include <cmath>

#include "src/catalog/model_variation.hpp"
#include "src/study/range.hpp"
#include "tests/support/simulation.hpp"

namespace gdr::sim {
namespace {

using namespace gdr::literals;

const std::string dgx = "topologies/clusters/two-dgx-a100.json";
const std::string one_nic = "topologies/clusters/two-dual-socket-4gpu-1nic.json";

Transfer between_ends(const Lab& lab, const std::string& from, const std::string& to, PathKind path,
                      Bytes size) {
  Transfer transfer;
  set_ends(lab.topology, find_end(lab.topology, from), find_end(lab.topology, to), transfer);
  transfer.path = path;
  transfer.size = size;
  return transfer;
}

/// With one request at a time its own latency sets the pace, not its busiest resource.
TEST(Limit, OneRequestAtATimeIsTheLimitOfStorage) {
  const Lab lab("topologies/servers/dgx-a100.json");
  const Bandwidth medium = models().nvme("gen4").write_bandwidth.value;
  for (const PathKind path : {PathKind::gds, PathKind::staged})
    for (const Bytes size : {4_KiB, 64_KiB, 1_MiB}) {
      SCOPED_TRACE(std::string(to_string(path)) + " " + to_string(size));
      const Transfer write = between_ends(lab, "h0/gpu0", "h0/nvme0", path, size);
      const Prediction one = lab.run(write, {1, 1, false});
      EXPECT_TRUE(one.bottleneck == Bottleneck(WindowId{WindowKind::queue_depth, 1}));
      // Each message waits for the completion of the one before it.
      expect_close("depth 1, GB/s", size.as_double() / one.completion.seconds / 1e9,
                   one.bandwidth.gigabytes_per_second(), 0.01);
      EXPECT_LT(one.bandwidth, medium * 0.95);
    }
  const Transfer large = between_ends(lab, "h0/gpu0", "h0/nvme0", PathKind::staged, 1_MiB);
  const std::optional<LongestStep> step = lab.run(large, {1, 1, false}).longest_step;
  ASSERT_TRUE(step);
  const VertexId nvme = lab.graph.device(find_device(lab.topology, "h0/nvme0"));
  EXPECT_TRUE((step->step == StepId{StepKind::dma_read, nvme, lab.graph.memory(0, 3), nvme}));
  EXPECT_GE(step->time, 1_MiB / medium);
  EXPECT_LE(step->time, 1_MiB / medium * 1.1);
  const Prediction many = lab.run(large, {16, 1, false});
  EXPECT_TRUE(many.bottleneck ==
              Bottleneck(ResourceId{ResourceKind::medium, nvme, Direction::writes}));
  EXPECT_FALSE(many.longest_step);
  const auto flash =
      lab.run(between_ends(lab, "h0/nvme0", "h0/gpu0", PathKind::staged, 4_KiB), {1, 1, false})
          .longest_step;
  ASSERT_TRUE(flash);
  EXPECT_TRUE((flash->step == StepId{.kind = StepKind::command, .by = nvme}));
}

/// The links that explain marks: STEP FROM > TO.
std::vector<std::string> marked(const Lab& lab, const Transfer& transfer) {
  std::vector<std::string> links;
  const Explanation explanation = explain(simulator(), lab.hardware, transfer, {});
  for (std::size_t i = 0; i < explanation.stages.size(); ++i)
    for (const HopReport& hop : explanation.stages[i].hops)
      if (hop.limits) links.push_back(std::to_string(i + 1) + " " + hop.from + " > " + hop.to);
  return links;
}

using Links = std::vector<std::string>;

TEST(Limit, IsMarkedAtTheLinksThatItIs) {
  const Lab lab(dgx);
  EXPECT_EQ(marked(lab, lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 1_MiB)),
            Links{"3 h0/nic0 > fabric"});
  EXPECT_EQ(marked(lab, lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 1_MiB)),
            (Links{"2 h0/cpu0 > h0/numa3", "3 h0/numa3 > h0/cpu0"}))
      << "both cross the same memory";
  const Lab slow(dgx, {"h0/nic0.link=gen3x8"});
  EXPECT_EQ(marked(slow, slow.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 1_MiB)),
            Links{"2 h0/sw0 > h0/nic0"});
  EXPECT_EQ(marked(lab, lab.transfer("h0/gpu0", "h0/gpu1", PathKind::nvlink, 1_MiB)).size(), 1U);
  // A limit of the root complex on peer reads marks no link.
  const Lab far(one_nic);
  EXPECT_EQ(marked(far, far.transfer("h0/gpu2", "h1/gpu2", PathKind::gdr, 1_MiB)), Links{});
}

/// Every uncertain parameter low and high, once with reuse where there is slack and once really
/// run.
void expect_near_is_exact(const Lab& lab, const Transfer& transfer, const Options& options) {
  SCOPED_TRACE(std::string(to_string(transfer.path)) + " " + to_string(transfer.size));
  std::vector<ModelLibrary> libraries;
  const Hardware asking(lab.graph, models());
  (void)predict(simulator(), asking, transfer, options);
  for (const auto& [kind, model] : asking.models_asked())
    for (const UncertainParameter& parameter :
         uncertain_parameters(models(), kind, model, study::estimate_spread))
      for (const Bound bound : {Bound::low, Bound::high})
        libraries.push_back(varied(models(), parameter, bound));
  ASSERT_GT(libraries.size(), 30U);
  const auto rate = [&](const ModelLibrary& library, bool near) {
    Options how = options;
    how.near = near;
    return predict(simulator(), Hardware(lab.graph, library), transfer, how)
        .bandwidth.bytes_per_second;
  };
  const double typical = rate(models(), true);
  const std::uint64_t begin = simulator().transfers();
  std::vector<double> near;
  for (const ModelLibrary& library : libraries) near.push_back(rate(library, true));
  const std::uint64_t middle = simulator().transfers();
  double worst = 0;
  std::size_t moved = 0;
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    const double exact = rate(libraries[i], false);
    worst = std::max(worst, std::abs(near[i] / exact - 1));
    moved += std::abs(exact / typical - 1) > 0.02 ? 1 : 0;
  }
  std::printf("%zu variations, %zu move the rate, worst deviation %.2f %%, pieces run: %.0f %%\n",
              libraries.size(), moved, worst * 100,
              100.0 * static_cast<double>(middle - begin) /
                  static_cast<double>(simulator().transfers() - begin));
  EXPECT_LE(worst, 1.0 / 60);
  EXPECT_GT(moved, 0U) << "nothing matters: the test shows nothing";
  EXPECT_LT((middle - begin) * 2, simulator().transfers() - begin) << "nothing is saved";
}

TEST(Limit, WhatHasSlackNeedNotBeRun) {
  const Lab two(dgx);
  expect_near_is_exact(two, two.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 256_KiB), {});
  expect_near_is_exact(two, two.transfer("h0/gpu0", "h1/gpu0", PathKind::tcp, 1_MiB), {});
  const Lab far(one_nic);
  expect_near_is_exact(far, far.transfer("h0/gpu2", "h1/gpu2", PathKind::gdr, 1_MiB), {});
  const Lab server("topologies/servers/dgx-a100.json");
  expect_near_is_exact(server, between_ends(server, "h0/nvme0", "h0/gpu0", PathKind::gds, 64_KiB),
                       {});
}

}  // namespace
}  // namespace gdr::sim
