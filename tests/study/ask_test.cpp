// One question, one answer: the verdict decides whether there is a prediction.
#include "src/study/ask.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/study/question_json.hpp"
#include "tests/support/simulation.hpp"

namespace gdr::study {
namespace {

using namespace literals;

constexpr const char* translating = "tests/data/translating-iommus.json";
constexpr const char* two_dgx = "topologies/clusters/two-dgx-a100.json";

struct Asked {
  Asked(const std::string& file, const std::vector<std::string>& settings = {})
      : lab(file, settings), verdict(judge(lab.graph, sim::models())) {}

  [[nodiscard]] Question question(const std::string& from, const std::string& to,
                                  PathKind path) const {
    return {lab.transfer(from, to, path, 64_MiB), {}, false};
  }
  [[nodiscard]] Answer answer(const Question& question) const {
    return ask(lab.hardware, verdict, sim::simulator(), question);
  }
  [[nodiscard]] const Pair& pair(std::size_t index) const { return verdict.pairs.at(index); }

  sim::Lab lab;
  Verdict verdict;
};

TEST(Ask, RefusesWhatTheVerdictBlocksWithThePairsOwnFinding) {
  const Asked asked(translating, {"h1.maps_peer_memory=false"});
  const Answer answer = asked.answer(asked.question("h0/gpu0", "h1/gpu0", PathKind::gdr));
  EXPECT_EQ(answer.prediction(), nullptr);
  ASSERT_NE(answer.refusal(), nullptr);
  const Refusal& refusal = *answer.refusal();
  EXPECT_EQ(refusal.kind, Refusal::Kind::blocked);
  ASSERT_TRUE(refusal.pair && refusal.finding);
  EXPECT_EQ(asked.pair(*refusal.pair).from, "h1/gpu0");
  EXPECT_EQ(asked.pair(*refusal.pair).to, "h1/nic0");
  // A finding with the same rule stands before it: h0's, which is slow for another reason.
  const Finding& finding = asked.verdict.findings.at(*refusal.finding);
  EXPECT_EQ(finding.rule, "iommu-translating");
  EXPECT_NE(std::find(finding.pairs.begin(), finding.pairs.end(), *refusal.pair),
            finding.pairs.end());
  const std::string reason = reason_of(refusal, asked.verdict);
  EXPECT_NE(reason.find("h1/gpu0 and h1/nic0 cannot reach each other"), std::string::npos)
      << reason;
  EXPECT_NE(reason.find("untranslated addresses"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("as dma-buf maps it"), std::string::npos) << reason;
}

TEST(Ask, StagingGoesWhereThePairIsBlocked) {
  const Asked asked(translating, {"h1.maps_peer_memory=false"});
  const Answer answer = asked.answer(asked.question("h0/gpu0", "h1/gpu0", PathKind::staged));
  ASSERT_NE(answer.prediction(), nullptr);
  EXPECT_TRUE(answer.admission.pairs.empty()) << "no peer traffic, no pair";
  EXPECT_EQ(answer.admission.verdict, PairAnswer::works);
}

TEST(Ask, SlowIsPredictedAndSaysWhichPair) {
  const Asked asked(translating, {"h1.kernel=6.1", "h1.cuda=12.2", "h1.open_kernel_modules=true"});
  const Answer answer = asked.answer(asked.question("h0/gpu0", "h1/gpu0", PathKind::gdr));
  ASSERT_NE(answer.prediction(), nullptr);
  EXPECT_EQ(answer.admission.verdict, PairAnswer::slow);
  ASSERT_EQ(answer.admission.pairs.size(), 2U);
  EXPECT_EQ(answer.admission.worst, answer.admission.pairs.front());
}

TEST(Ask, EveryAnswerThatIsNoYesIsDecidedByAFindingOfThePair) {
  for (const auto& settings : std::vector<std::vector<std::string>>{
           {}, {"acs=on"}, {"iommu=translate"}, {"h0.nvidia_peermem=false"}}) {
    const Asked asked(two_dgx, settings);
    for (std::size_t i = 0; i < asked.verdict.pairs.size(); ++i) {
      const Pair& pair = asked.pair(i);
      ASSERT_EQ(pair.decided_by.has_value(), pair.answer != PairAnswer::works) << pair.from;
      if (!pair.decided_by) continue;
      const Finding& finding = asked.verdict.findings.at(*pair.decided_by);
      EXPECT_TRUE(std::binary_search(finding.pairs.begin(), finding.pairs.end(), i))
          << pair.from << " " << pair.to << ": " << finding.rule;
      EXPECT_NE(std::find(pair.findings.begin(), pair.findings.end(), finding.rule),
                pair.findings.end());
    }
  }
}

TEST(Ask, SaysWhyItTakesANic) {
  const Asked asked(two_dgx);
  Question question = asked.question("h0/gpu0", "h1/gpu0", PathKind::gdr);
  question.transfer.via = {find_device(asked.lab.topology, "h0/nic3")};
  const std::vector<TakenNic> nics = asked.answer(question).admission.nics;
  ASSERT_EQ(nics.size(), 2U);
  EXPECT_EQ(nics[0].nic, question.transfer.via.front());
  EXPECT_EQ(nics[0].reason, NicReason::chosen);
  EXPECT_EQ(nics[1].reason, NicReason::best);
  const BestPair best = *std::find_if(asked.verdict.best.begin(), asked.verdict.best.end(),
                                      [](const BestPair& one) { return one.gpu == "h1/gpu0"; });
  EXPECT_EQ(label(asked.lab.topology, nics[1].nic), asked.pair(best.pair).to);
}

TEST(Ask, APathThatDoesNotLeadThereIsRefusedWithoutAFinding) {
  const Asked asked(two_dgx);
  const Answer answer = asked.answer(asked.question("h0/gpu0", "h1/gpu0", PathKind::p2p));
  ASSERT_NE(answer.refusal(), nullptr);
  EXPECT_EQ(answer.refusal()->kind, Refusal::Kind::no_path);
  EXPECT_FALSE(answer.refusal()->finding.has_value());
  EXPECT_NE(reason_of(*answer.refusal(), asked.verdict).find("the path p2p does not lead from"),
            std::string::npos);
  const Asked apart(two_dgx, {"fabric.model=roce-v2", "h0/nic0.link_layer=infiniband"});
  Question question = apart.question("h0/gpu0", "h1/gpu0", PathKind::gdr);
  question.transfer.via = {find_device(apart.lab.topology, "h0/nic0")};
  EXPECT_NE(reason_of(*apart.answer(question).refusal(), apart.verdict)
                .find("h0/nic0 speaks infiniband and the fabric roce-v2 is ethernet"),
            std::string::npos);
}

TEST(Ask, AnUnknownPairIsPredicted) {
  const Asked asked(two_dgx, {"iommu=translate"});
  const Answer answer = asked.answer(asked.question("h0/gpu0", "h1/gpu0", PathKind::gdr));
  EXPECT_EQ(answer.admission.verdict, PairAnswer::unknown);
  EXPECT_NE(answer.prediction(), nullptr);
  ASSERT_TRUE(answer.admission.worst.has_value());
  const Pair& worst = asked.pair(*answer.admission.worst);
  EXPECT_EQ(worst.from, "h0/gpu0");
  const Finding& finding = asked.verdict.findings.at(*worst.decided_by);
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_NE(finding.remedy.find("\"maps_peer_memory\""), std::string::npos)
      << "the member that decides: " << finding.remedy;
}

TEST(Ask, ARangeIsCappedByThePorts) {
  const Asked asked(two_dgx);
  Question question = asked.question("h0/gpu0", "h1/gpu0", PathKind::gdr);
  question.range = true;
  const Answer answer = asked.answer(question);
  ASSERT_TRUE(answer.range.has_value());
  fmt::print("{:.2f} GB/s, range {:.2f} to {:.2f}, port 25\n",
             answer.prediction()->bandwidth.gigabytes_per_second(), answer.range->bandwidth.low,
             answer.range->bandwidth.high);
  EXPECT_LE(answer.range->bandwidth.high, 25.0);
  EXPECT_LT(answer.range->bandwidth.low, answer.prediction()->bandwidth.gigabytes_per_second());
}

TEST(Question, ItsJsonReadsBack) {
  const sim::Lab lab(two_dgx);
  const char* text = R"({"from": "h0/gpu0", "to": "h1/gpu3", "path": "gdr", "operation": "read",
    "memory": "gpu", "size": "1MiB", "initiator": "proxy", "work_request": "fetch",
    "inline": false, "pageable": false, "window": "64MiB", "via": ["h0/nic1", "h1/nic2"],
    "depth": 7, "queue_pairs": 3, "completion_every": 5, "bidirectional": true, "range": true})";
  const json::Value written = json::parse(text, "question.json");
  const Question question = read_question(json::Node(written, "question.json"), lab.topology);
  EXPECT_EQ(question.transfer.operation, Operation::read);
  EXPECT_EQ(question.options.queue_pairs, 3);
  EXPECT_EQ(json::dump(to_json(lab.graph, question)), json::dump(written));
  const json::Value host = json::parse(
      R"({"from": "h0/gpu0", "to": "h0/numa1", "path": "copy", "size": "8B"})", "question.json");
  const Question copy = read_question(json::Node(host, "question.json"), lab.topology);
  EXPECT_EQ(copy.transfer.host_end, HostEnd::to);
  EXPECT_EQ(copy.options.depth, 128);
  const json::Value again = to_json(lab.graph, copy);
  EXPECT_EQ(json::dump(to_json(lab.graph, read_question(json::Node(again, "again"), lab.topology))),
            json::dump(again));
}

}  // namespace
}  // namespace gdr::study
