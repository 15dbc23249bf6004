#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/flow/ids.hpp"
#include "src/common/units.hpp"

namespace gdr::sim {

// What the event engine runs: plain data without any notion of PCIe. Resources are shared by flows;
// a flow is a pipeline of stages; windows bound what is under way between two stages. A resource's
// work is counted in units (bytes on that link, headers included; for a NIC's message pipeline,
// nanoseconds).

/// Something with a capacity that flows share (max-min).
struct Resource {
  ResourceId id{};
  double units_per_second = 0;
  Bandwidth capacity{};  ///< as its component states it: of payload, or of what crosses a link
  bool operator==(const Resource&) const = default;
};

/// One stage of a flow. It works on one piece at a time, in order; a piece that has been sent is
/// still `latency` away from the next stage while the following one is being sent (latency is not
/// occupancy).
struct StageSpec {
  StepId step{};
  std::vector<std::size_t>
      resources{};  ///< indices in Scenario::resources; one that is listed twice is used twice
  std::vector<std::size_t> request_resources{};  ///< used at the same time by the read requests
  Bytes granule{4096};  ///< size of a piece; a piece never spans two messages
  bool whole_message =
      false;  ///< one piece per message, whatever its size; its work is units_per_granule
  double units_per_byte = 1;
  double units_per_packet = 0;  ///< added for each packet of a piece
  Bytes packet{4096};
  double units_per_granule = 0;  ///< added once per piece
  Bytes request_packet{512};     ///< payload that one read request asks for
  double units_per_request = 0;  ///< work of one read request on request_resources
  double limit = 0;              ///< units per second of this flow alone in this stage; 0: none
  LimitId limited_by{};          ///< what the limit is
  Duration setup{};              ///< the stage is busy for this time before each piece
  Duration latency{};            ///< from the last unit sent until the piece is at the next stage
  std::size_t plan_stage = no_plan_stage;  ///< the stage of the transfer plan that this is

  static constexpr std::size_t no_plan_stage = static_cast<std::size_t>(-1);
  bool operator==(const StageSpec&) const = default;
};

/// At most `limit` bytes (or `pieces` pieces) between the start of stage `first` and the arrival
/// after stage `last` (plus `return_latency`). One piece may always go when nothing is under way.
struct WindowSpec {
  WindowId id{};
  std::size_t first = 0;
  std::size_t last = 0;
  Bytes limit{};
  Duration return_latency{};
  std::uint64_t pieces = 0;  ///< not 0: counts pieces of the first stage instead of bytes (one per
                             ///< buffer, however full)
  Bytes quantum{0};          ///< not 0: what has arrived counts in multiples of this only
  bool operator==(const WindowSpec&) const = default;
};

/// Messages of one size that go through the stages one after the other.
struct FlowSpec {
  std::vector<StageSpec> stages{};
  std::vector<WindowSpec> windows{};
  Bytes message{};
  std::uint64_t messages = 1;  ///< 0: without end, until the steady state is known
  Duration start{};
  std::size_t completion_stage =
      0;  ///< the initiator's completion starts when this stage has delivered the message...
  Duration completion_latency{};  ///< ...and takes this time
  bool operator==(const FlowSpec&) const = default;
};

struct Scenario {
  std::vector<Resource> resources{};
  std::vector<FlowSpec> flows{};
  bool extrapolate = true;  ///< false: run every piece of finite flows
  bool record = false;      ///< true: Outcome::spans has the time of each piece in each stage (only
                            ///< with extrapolate false)
  bool operator==(const Scenario&) const = default;
};

/// When a stage worked on the first message, from the flow's start.
struct StageTimes {
  Duration begin;  ///< its first piece started
  Duration end;    ///< its last piece was at the next stage
  bool operator==(const StageTimes&) const = default;
};

/// How a flow went.
struct FlowOutcome {
  Duration first_arrival;     ///< from the flow's start until the first message has left the last
                              ///< stage whole
  Duration first_completion;  ///< from the flow's start to the initiator's completion of the first
                              ///< message
  Duration finish;            ///< finite flows: from the scenario's start to the last byte
  Bandwidth
      rate;  ///< steady state payload; finite flows: all bytes over the time from start to finish
  bool steady = false;  ///< a steady state was found
  std::vector<StageTimes> stages;
  bool operator==(const FlowOutcome&) const = default;
};

/// A piece in a stage, from when the stage took it (its set-up included) until its last unit was
/// sent.
struct Span {
  std::size_t flow = 0;
  std::size_t stage = 0;
  Bytes bytes;
  Duration begin;  ///< from the scenario's start
  Duration end;
  bool operator==(const Span&) const = default;
};

struct Outcome {
  std::vector<FlowOutcome> flows;
  std::uint64_t transfers = 0;     ///< pieces that the engine simulated (all stages)
  std::uint64_t extrapolated = 0;  ///< pieces of the last stage that it skipped
  std::vector<Span> spans;         ///< in order of their ends; only when asked for
  bool operator==(const Outcome&) const = default;
};

}  // namespace gdr::sim
