#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/common/units.hpp"
#include "src/datapath/data_path.hpp"

namespace gdr::study {

/// One figure that a tool printed.
struct Figure {
  std::string tool;  ///< "ib_write_bw", "nccl-tests", "OSU", "nvbandwidth",
                     ///< "p2pBandwidthLatencyTest", "gdsio"
  std::size_t line = 0;
  Operation operation = Operation::write;
  Bytes size;
  std::optional<Bandwidth> bandwidth;  ///< payload, one direction; of `bidirectional` both together
  std::optional<Duration> latency;     ///< one way
  bool bidirectional = false;
  std::optional<bool> gpu_memory;           ///< nullopt: not said
  std::optional<std::pair<int, int>> gpus;  ///< from, to: a figure of a matrix
  std::optional<bool> peer_to_peer;  ///< the tool had it on or off (gdsio: GPUDirect Storage, or a
                                     ///< bounce through host memory)
  int queue_pairs = 1;
  int threads = 1;  ///< gdsio: each has one request under way
};

/// Output of ib_write_bw, ib_read_bw, ib_send_bw and their _lat, nccl-tests, OSU's point-to-point
/// tests, nvbandwidth, CUDA's p2pBandwidthLatencyTest and gdsio; several in one text. Throws
/// InputError when there is no figure in it, and naming the line when a line of gdsio does not say
/// a way, a direction or a number of threads that there is.
std::vector<Figure> read_figures(std::string_view text, const std::string& name);

}  // namespace gdr::study
