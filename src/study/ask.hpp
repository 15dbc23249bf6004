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

/// What is asked: which bytes move by which path, how they are driven, and whether to say how far
/// the answer may be off.
struct Question {
  Transfer transfer;  ///< `via`: the NICs that were chosen; a GPU without one takes its best
  sim::Options options;
  bool range = false;
};

/// Why a transfer takes a NIC.
enum class NicReason {
  chosen,   ///< the question names it
  best,     ///< the verdict calls it the best NIC of the GPU
  nearest,  ///< it is the nearest one to an end that has no best NIC
};
/// "chosen", "best", "nearest"
std::string_view to_string(NicReason reason);

struct TakenNic {
  DeviceId nic;
  NicReason reason = NicReason::nearest;
  bool operator==(const TakenNic&) const = default;
};

/// Why a transfer is not predicted.
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
/// Sentences: what is in the way, and for a blocked pair the cure.
std::string reason_of(const Refusal& refusal, const Verdict& verdict);

/// What the verdict and the planner say of a transfer, before any time is predicted. Every command
/// that predicts, and `gdr emulate --compare`, begin with this.
struct Admission {
  Transfer transfer;               ///< `via` completed
  std::vector<TakenNic> nics;      ///< of the side that the bytes leave, then of the other side
  std::vector<std::size_t> pairs;  ///< that the path needs: indices in Verdict::pairs. GPU and NIC
                                   ///< on either side for gdr, the two GPUs for p2p; empty for
                                   ///< paths through host memory
  PairAnswer verdict = PairAnswer::works;  ///< the worst of the pairs
  std::optional<std::size_t> worst;        ///< the pair that has it; nullopt: all pairs work
  std::optional<Refusal> refusal;          ///< nullopt: it can be planned and predicted
};

/// `verdict` must be the one on the graph. A pair whose answer is unknown is admitted. Throws
/// InputError when the ends or NICs of the transfer make no sense on this topology.
Admission admit(const Graph& graph, const ModelLibrary& models, const Verdict& verdict,
                const Transfer& transfer);

struct Answer {
  Admission admission;
  std::variant<sim::Prediction, Refusal> outcome;
  std::optional<PredictionRange> range;  ///< where the question asks for it

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
