#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdr::nccl {

/// A line of an NCCL_DEBUG=INFO log that says something about GPUDirect RDMA, and what it means.
struct Explained {
  std::size_t line = 0;     ///< from 1
  std::string text;         ///< the line after "NCCL INFO"
  std::string meaning;      ///< one or two sentences
  std::optional<bool> gdr;  ///< GPUDirect RDMA is used (true), or not
  std::string gpu;  ///< as the log has it: a bus number "c1000", a rank, a device; empty: the line
                    ///< names none
  std::string net;  ///< number or name
  std::optional<std::string> distance;  ///< word
};

struct Log {
  std::string version;  ///< "2.18.6": from the log, or given
  std::vector<Explained> lines;
  std::vector<std::string> settings;  ///< "NCCL_NET_GDR_LEVEL set by environment to PHB"
};

/// Reads a log. `version` is used where the log does not say its own; with neither, or where the
/// log's is none of known_versions, numbers of distances are told for all versions that they fit.
/// Throws InputError when the text has no line of NCCL, or `version` is not known.
Log read_log(std::string_view text, const std::string& name, const std::string& version = {});

}  // namespace gdr::nccl
