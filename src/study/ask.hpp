#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/predict.hpp"
#include "src/study/range.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr::study {

/// A question: which bytes move by which path, how they are driven, and whether the answer needs a
/// range.
struct Question {
  Transfer transfer;  ///< `via`: the chosen NICs; a GPU without one takes its best
  sim::Options options;
  bool range = false;
};

/// The reason for which a transfer takes a NIC.
enum class NicReason {
  chosen,   ///< the question names it
  best,     ///< the verdict calls it the best NIC of the GPU
  nearest,  ///< it is nearest to an end that has no best NIC
};
/// "chosen", "best", "nearest"
std::string_view to_string(NicReason reason);

struct TakenNic {
  DeviceId nic;
  NicReason reason = NicReason::nearest;
  bool operator==(const TakenNic&) const = default;
};

/// The reason for which a transfer is not predicted.
struct Refusal {
  enum class Kind {
    blocked,  ///< the verdict blocks a pair that the path needs
    no_path,  ///< the path does not lead from one end to the other on this topology
  };
  Kind kind = Kind::no_path;
  std::optional<std::size_t> pair;     ///< blocked: index in Verdict::pairs
  std::optional<std::size_t> finding;  ///< blocked: index in Verdict::findings of what blocks it
  std::string obstacle;                ///< no_path: a sentence
  bool operator==(const Refusal&) const = default;
};
/// "blocked", "no-path"
std::string_view to_string(Refusal::Kind kind);
/// Sentences: the obstacle and, for a blocked pair, its remedy.
std::string reason_of(const Refusal& refusal, const Verdict& verdict);

/// The verdict's and the planner's answer on a transfer, before any time is predicted. Every
/// command that predicts, and `gdr emulate --compare`, begin with it.
struct Admission {
  Transfer transfer;           ///< `via` completed
  std::vector<TakenNic> nics;  ///< on the side that the bytes leave, then on the other
  std::vector<std::size_t>
      pairs;  ///< indices in Verdict::pairs of those that the path needs: GPU and NIC on either
              ///< side for gdr, the two GPUs for p2p; none for paths through host memory
  PairAnswer verdict = PairAnswer::works;  ///< the worst of the pairs
  std::optional<std::size_t> worst;        ///< the pair with that answer; nullopt: all pairs work
  std::optional<Refusal> refusal;          ///< nullopt: it can be planned and predicted
};

/// `verdict` must be that of the graph. A pair whose answer is unknown is admitted. Throws
/// InputError when the ends or NICs of the transfer are invalid on this topology.
Admission admit(const Graph& graph, const ModelLibrary& models, const Verdict& verdict,
                const Transfer& transfer);

struct Answer {
  Admission admission;
  std::variant<sim::Prediction, Refusal> outcome;
  std::optional<PredictionRange> range;  ///< set when the question asks for it

  /// nullptr: refused.
  [[nodiscard]] const sim::Prediction* prediction() const {
    return std::get_if<sim::Prediction>(&outcome);
  }
  /// nullptr: predicted.
  [[nodiscard]] const Refusal* refusal() const { return std::get_if<Refusal>(&outcome); }
};

/// Answers a question: a prediction where the verdict admits the transfer, else a refusal. Throws
/// InputError as admit() does.
Answer ask(const Hardware& hardware, const Verdict& verdict, sim::Simulator& simulator,
           const Question& question);

}  // namespace gdr::study
