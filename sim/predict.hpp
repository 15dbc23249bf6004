#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/flow/bottleneck.hpp"
#include "sim/flow/build.hpp"

namespace gdr::sim {

/// Runs scenarios and remembers them: scenarios that are equal up to names (the pairs of a
/// symmetrical server) run once.
class Simulator {
 public:
  Outcome run(const Scenario& scenario);
  /// The same for an endless stream, but reuses the outcome of an earlier one with the same
  /// bottleneck when all that differs has slack. Ranges vary hundreds of parameters, of which few
  /// affect the bottleneck.
  Outcome run_near(const Scenario& scenario);
  /// Pieces that the engine has really simulated; scenarios asked for, and scenarios run.
  [[nodiscard]] std::uint64_t transfers() const { return transfers_; }
  [[nodiscard]] std::size_t asked() const { return asked_; }
  [[nodiscard]] std::size_t ran() const { return known_.size(); }

 private:
  Engine engine_;
  std::unordered_map<std::string, Outcome> known_;
  std::vector<std::pair<Scenario, Outcome>> near_;
  std::uint64_t transfers_ = 0;
  std::size_t asked_ = 0;
};

struct Options {
  int depth = 128;
  int queue_pairs = 1;
  bool bidirectional = false;  ///< the same transfer in the opposite direction at the same time;
                               ///< bandwidths are then sums
  int completion_every = 1;    ///< messages per completion (perftest's --cq-mod)
  bool near = false;           ///< faster, with the rate to one part in 60 (Simulator::run_near)
};

/// What is predicted for one transfer.
struct Prediction {
  Transfer transfer;
  Duration latency;     ///< one message alone, from the post until its last byte is visible in the
                        ///< target memory
  Duration completion;  ///< the same message, until the initiator has its completion
  Bandwidth bandwidth;  ///< steady state at the given depth, payload
  Bottleneck bottleneck;
  std::optional<LongestStep> longest_step;  ///< where the bottleneck is the queue depth
  double cpu_cores = 0;                     ///< busy at that bandwidth, all hosts together
  double host_memory_bytes_per_byte = 0;
  double dram_bytes_per_byte = 0;
  double pcie_bytes_per_byte = 0;
  std::vector<Stage> stages;
};

/// One hop of a stage, as the data takes it.
struct HopReport {
  std::string from;
  std::string to;
  std::string link;                    ///< "gen4x16", "socket link", ...
  std::optional<Bandwidth> bandwidth;  ///< of the link in this direction, headers included
  Duration latency;     ///< of the device at the hop's far end (the first hop: at both ends)
  double bytes = 0;     ///< on the link, headers included
  bool limits = false;  ///< the bottleneck of the prediction is this link in this direction
};

/// One stage of a message without other traffic.
struct StageReport {
  StepId step;
  std::optional<Mover> mover;  ///< none: what the CPU does around the stages (post, launch)
  std::string from;
  std::string to;
  Bytes bytes;
  StageTimes times;
  Duration latency;  ///< of a piece, after it was sent
  Bottleneck limit;  ///< the tightest bound of the stage beside its links: a window, credits, the
                     ///< root complex...
  Bandwidth limit_rate;  ///< of payload
  std::vector<HopReport> hops;
};

/// A prediction taken apart.
struct Explanation {
  Prediction prediction;
  std::optional<Bandwidth>
      bottleneck_rate;  ///< what the bottleneck carries in a second, when it is a resource
  std::vector<std::size_t>
      bottleneck_stages;  ///< indices in `stages` of those that use it, one for each use
  std::vector<std::string> bottleneck_at;  ///< labels of the devices and memories where it is
  std::vector<StageReport> stages;
};

/// When each piece of one message was in each stage, and what it used there.
struct Timeline {
  struct Step {
    StepId id;
    std::vector<ResourceId> resources;  ///< links, engines, memory that the stage works on
  };
  std::vector<Step> steps;
  std::vector<Span> spans;  ///< Span::stage counts steps
  Duration end;             ///< the last byte is visible
};
/// Throws InputError when the message has more than `most_spans` pieces.
Timeline timeline(Simulator& simulator, const Hardware& hardware, const Transfer& transfer);
inline constexpr std::size_t most_spans = 200'000;

Explanation explain(Simulator& simulator, const Hardware& hardware, const Transfer& transfer,
                    const Options& options);

Prediction predict(Simulator& simulator, const Hardware& hardware, const Transfer& transfer,
                   const Options& options);

/// One of several transfers that run at once.
struct TimedTransfer {
  Transfer transfer;
  Duration start;
};

/// Each flow moves its bytes once: latency and completion count from its own start, bandwidth is
/// its bytes over that time.
std::vector<Prediction> predict_together(Simulator& simulator, const Hardware& hardware,
                                         const std::vector<TimedTransfer>& flows,
                                         const Options& options);

/// A message without other traffic.
struct MessageTimes {
  Duration latency;
  Duration completion;
};
MessageTimes predict_message(Simulator& simulator, const Hardware& hardware,
                             const Transfer& transfer);

/// Endless transfers, all at once (and each in the opposite direction as well, when
/// `bidirectional`).
struct StreamRates {
  Bandwidth sum;
  std::vector<Bandwidth> each;  ///< by transfer; both directions of one together
  Bottleneck bottleneck;        ///< of the first
};
StreamRates predict_streams(Simulator& simulator, const Hardware& hardware,
                            const std::vector<Transfer>& transfers, const Options& options);

}  // namespace gdr::sim
