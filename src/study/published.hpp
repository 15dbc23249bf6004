#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/datapath/data_path.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr::study {

/// What a published figure measures.
enum class Metric {
  bandwidth,           ///< payload of all flows and directions together
  bandwidth_each_way,  ///< half of `bandwidth`, for sources that run both directions and print one
  bandwidth_to_the_end,  ///< flows that move equal bytes: all bytes over the time until the last
                         ///< flow has ended
  latency,               ///< one message alone, until its last byte is visible in the target memory
  completion,            ///< one message alone, until the initiator has its completion
  round_trip,            ///< a message and an equal one back: twice the latency
  loaded_latency,  ///< time of a message when `depth` of them are under way: depth messages over
                   ///< the bandwidth
};
std::string_view to_string(Metric metric);
/// True: the metric is in GB/s; false: in us.
bool is_bandwidth(Metric metric);

/// One published measurement as a run of the simulator.
struct PublishedCase {
  std::string name;          ///< unique over all files
  std::string file;          ///< the file that has the case
  std::string category;      ///< p2p, gdr, staged...
  std::string source;        ///< title and address
  std::string where;         ///< place in the source
  std::string platform;      ///< the machine's name in the file: records of one platform share it
  std::string source_mark;   ///< text by which model files name this source; may be empty
  bool calibration = false;  ///< the figure was used to set a parameter
  std::string topology;      ///< path of the file
  std::vector<Setting> settings;
  struct Flow {
    std::string from;
    std::string to;
    std::vector<std::string> via;  ///< NICs
  };
  std::vector<Flow> flows;
  Transfer transfer;  ///< path, operation, memory, size, window, initiator; the ends are in `flows`
  sim::Options options;
  Metric metric = Metric::bandwidth;
  double measured = 0;  ///< GB/s (10^9 bytes) or us
};

/// A record that is not run, and the reason.
struct LeftOut {
  std::string name;
  std::string file;
  std::string reason;
};

struct PublishedCases {
  std::vector<PublishedCase> cases;
  std::vector<LeftOut> left_out;
};

/// Reads files, or folders of files (in order of name). `topologies` is the folder that topology
/// names are relative to. Throws InputError "FILE: at PATH: ...".
PublishedCases load_published(const std::vector<std::string>& paths, const std::string& topologies);

}  // namespace gdr::study
