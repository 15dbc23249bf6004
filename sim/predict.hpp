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
  /// The same for an endless stream; where one that ran like this before has the same bottleneck,
  /// and what differs has slack, its outcome is taken. Ranges vary hundreds of parameters, of which
  /// few touch the bottleneck.
  Outcome run_near(const Scenario& scenario);
  /// Granules that the engine has really simulated, and scenarios asked for and run.
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
  bool bidirectional =
      false;  ///< the same transfer the other way at the same time; bandwidths are then sums
  int completion_every = 1;  ///< messages that one completion stands for (perftest's --cq-mod)
  bool near = false;         ///< the rate to a part in 60, faster (Simulator::run_near)
};

/// What is predicted for one transfer.
struct Prediction {
  Transfer transfer;
  Duration
      latency;  ///< one message alone, from the post to the last byte visible in the target memory
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
  Duration latency;     ///< of what lies at the hop's far end (the first hop: at both ends)
  double bytes = 0;     ///< on the link, headers included
  bool limits = false;  ///< the bottleneck of the prediction is this link in this direction
};

/// One stage of a message that travels alone.
struct StageReport {
  StepId step;
  std::optional<Mover> mover;  ///< none: what the CPU does around the stages (post, launch)
  std::string from;
  std::string to;
  Bytes bytes;
  StageTimes times;
  Duration latency;      ///< of a granule, after it was sent
  Bottleneck limit;      ///< the tightest of what bounds the stage beside its links: a window,
                         ///< credits, the root complex...
  Bandwidth limit_rate;  ///< of payload
  std::vector<HopReport> hops;
};

/// A prediction taken apart.
struct Explanation {
  Prediction prediction;
  std::optional<Bandwidth>
      bottleneck_rate;  ///< what the bottleneck carries in a second, when it is a resource
  std::vector<std::size_t>
      bottleneck_stages;                   ///< that use it: indices in `stages`, one for each use
  std::vector<std::string> bottleneck_at;  ///< labels of the devices and memories that it is at
  std::vector<StageReport> stages;
};

/// When each granule of one message was in each stage, and what it used there.
struct Timeline {
  struct Step {
    StepId id;
    std::vector<ResourceId> resources;  ///< links, engines, memory that the stage works on
  };
  std::vector<Step> steps;
  std::vector<Span> spans;  ///< Span::stage counts steps
  Duration end;             ///< the last byte is visible
};
/// Throws InputError when the message has more than `most_spans` granules.
Timeline timeline(Simulator& simulator, const Hardware& hardware, const Transfer& transfer);
inline constexpr std::size_t most_spans = 200'000;

Explanation explain(Simulator& simulator, const Hardware& hardware, const Transfer& transfer,
                    const Options& options);

Prediction predict(Simulator& simulator, const Hardware& hardware, const Transfer& transfer,
                   const Options& options);

/// A transfer among others, for several flows at once.
struct TimedTransfer {
  Transfer transfer;
  Duration start;
};

/// Each flow moves its bytes once: latency and completion count from its own start, bandwidth is
/// its bytes over that time.
std::vector<Prediction> predict_together(Simulator& simulator, const Hardware& hardware,
                                         const std::vector<TimedTransfer>& flows,
                                         const Options& options);

/// A message that travels alone.
struct MessageTimes {
  Duration latency;
  Duration completion;
};
MessageTimes predict_message(Simulator& simulator, const Hardware& hardware,
                             const Transfer& transfer);

/// Transfers that go on without end, all at once (and each the other way, when `bidirectional`).
struct StreamRates {
  Bandwidth sum;
  std::vector<Bandwidth> each;  ///< by transfer; both directions of one together
  Bottleneck bottleneck;        ///< of the first
};
StreamRates predict_streams(Simulator& simulator, const Hardware& hardware,
                            const std::vector<Transfer>& transfers, const Options& options);

}  // namespace gdr::sim
