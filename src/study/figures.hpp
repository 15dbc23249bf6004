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
  std::optional<Bandwidth>
      bandwidth;  ///< payload of one direction; when `bidirectional`, of both together
  std::optional<Duration> latency;  ///< one way
  bool bidirectional = false;
  std::optional<bool> gpu_memory;           ///< nullopt: not stated
  std::optional<std::pair<int, int>> gpus;  ///< from, to: a figure of a matrix
  std::optional<bool> peer_to_peer;  ///< whether the tool had it on (gdsio: GPUDirect Storage, or a
                                     ///< bounce through host memory)
  int queue_pairs = 1;
  int threads = 1;  ///< gdsio: number of threads, each with one request under way
};

/// Output of ib_write_bw, ib_read_bw, ib_send_bw and their _lat, nccl-tests, OSU's point-to-point
/// tests, nvbandwidth, CUDA's p2pBandwidthLatencyTest and gdsio; the text may hold several. Throws
/// InputError when it holds no figure, and names the line when a line of gdsio has an unknown
/// transfer type, direction or number of threads.
std::vector<Figure> read_figures(std::string_view text, const std::string& name);

}  // namespace gdr::study
