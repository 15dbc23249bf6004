#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdr::nccl {

/// A line about GPUDirect RDMA from an NCCL_DEBUG=INFO log, and its meaning.
struct Explained {
  std::size_t line = 0;     ///< from 1
  std::string text;         ///< the line after "NCCL INFO"
  std::string meaning;      ///< one or two sentences
  std::optional<bool> gdr;  ///< GPUDirect RDMA is used (true), or not
  std::string
      gpu;  ///< as in the log: a bus number "c1000", a rank or a device; empty: the line names none
  std::string net;                      ///< number or name
  std::optional<std::string> distance;  ///< word
};

struct Log {
  std::string version;  ///< "2.18.6": from the log, or given
  std::vector<Explained> lines;
  std::vector<std::string> settings;  ///< "NCCL_NET_GDR_LEVEL set by environment to PHB"
};

/// Reads a log. `version` is used if the log does not name its own. Without a known version,
/// distances are explained for every version that their numbers fit. Throws InputError when the
/// text has no line of NCCL, or `version` is unknown.
Log read_log(std::string_view text, const std::string& name, const std::string& version = {});

}  // namespace gdr::nccl
