#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/pcie_link.hpp"
#include "src/study/figures.hpp"
#include "src/topology/topology.hpp"

namespace gdr::study {

/// The changes of the topology that are tried.
enum class Change {
  none,
  half_lanes,         ///< a device's link has half of its lanes
  slower_generation,  ///< a device's link runs one generation slower
  idle_speed,         ///< a device's link runs at the speed of an idle one
  half_port_rate,     ///< network ports run at half of their rate
  acs_redirects,      ///< ACS redirects at all ports
  far_nic,            ///< the NIC of another NUMA node is used
  all_drives,         ///< the files are on all drives; the topology is unchanged
};

struct Condition {
  Change change = Change::none;
  std::string device;                  ///< the device of the link, or the far NIC: "h0/gpu0"
  std::optional<PcieLink> link;        ///< of a changed link: the assumed speed and width
  std::optional<PcieLink> usual_link;  ///< of a changed link: those in the topology
  std::optional<Bandwidth> port_rate;  ///< half_port_rate: the half
  std::size_t drives = 0;              ///< all_drives
  bool operator==(const Condition&) const = default;

  /// True when the condition differs from the topology.
  [[nodiscard]] bool departs() const {
    return change != Change::none && change != Change::all_drives;
  }
};

/// A possible explanation of a figure.
struct Candidate {
  PathKind path = PathKind::gdr;
  Condition condition;
  double predicted = 0;  ///< bytes per second, or seconds
  double deviation = 0;  ///< measured / predicted - 1

  /// True when the path uses bounce buffers in host memory.
  [[nodiscard]] bool staged() const { return path == PathKind::staged || path == PathKind::tcp; }
};

enum class Sureness { sure, likely, open, none };
/// "sure", "likely", "open", "none"
std::string_view to_string(Sureness sureness);

/// What to look at next, by the outcome.
enum class Advice {
  nothing,                ///< the figure is what the topology gives
  compare_p2p_off,        ///< gdr does not predict this latency
  name_drives,            ///< no drive, or no GPU, is known
  vary_storage_run,       ///< nothing fits a figure of storage
  ask_gds_tools,          ///< several paths of storage fit
  ask_why_compatibility,  ///< storage goes through host memory
  look_further,           ///< nothing fits
  ask_gdr_tools,          ///< several explanations fit
  compare_links,          ///< a link is slower than it should be
  see_port_rates,         ///< network ports run at half of their rate
  clear_acs,              ///< ACS redirects
  see_nic,                ///< a far NIC was used
  p2p_was_off,            ///< the tool had peer-to-peer switched off
  find_why_staged,        ///< GPUDirect RDMA is not used
  test_gpu_memory,        ///< host memory was moved
};

/// A path that the verdict blocks on the unchanged topology, so that no figure can come from it.
struct BlockedPath {
  PathKind path = PathKind::gdr;
  std::string rule;  ///< rule of the finding that blocks it
};

/// A NIC whose model and rate the topology does not state.
struct AssumedNic {
  std::string nic;
  Bandwidth port_rate;
};

struct Fit {
  Figure figure;
  std::string from;
  std::string to;
  std::vector<Candidate> candidates;  ///< nearest first
  Sureness sureness = Sureness::none;
  Advice advice = Advice::nothing;
  std::vector<BlockedPath> blocked;
  std::optional<AssumedNic> assumed_nic;
};

bool of_storage(const Figure& figure);
/// False for figures that no path predicts: latencies of p2pBandwidthLatencyTest.
bool is_predicted(const Figure& figure);
/// How far a candidate is from its figure: |log(measured / predicted)|.
double distance_of(const Candidate& candidate);
/// The candidate of the unchanged topology and the direct path: what the figure should have been;
/// nullptr: there is no direct path.
const Candidate* usual(const Fit& fit);

/// True when a figure is known (sure, likely) to come from a detour that nobody asked for or from a
/// machine that is less than the topology states, or when a bandwidth that fits nothing is less
/// than 70 % of that of the direct path.
bool is_downgrade(const Fit& fit);

/// The ends of the measured transfer, where the tool does not print them.
struct Ends {
  std::string from;
  std::string to;
};

/// Fits each figure to the paths that the verdict admits. Ends default to GPU 0 of the first and of
/// the second host; a topology of one host gets an equal second one for tools that use the network.
/// Throws InputError for ends that do not exist.
std::vector<Fit> fit(sim::Simulator& simulator, const Topology& topology,
                     const ModelLibrary& models, const std::vector<Figure>& figures,
                     const Ends& ends);

}  // namespace gdr::study
