#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/import/lspci_tree.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads what lspci prints, line by line: lists (-v to -vvv, -n, -nn, -P, -PP, -x to -xxxx, with or
/// without names and domains), trees (-t, -tv), and ACSCtl lines that grep extracted. Does not
/// claim other lines.
class LspciReader {
 public:
  /// True when lspci printed the line.
  bool line(std::string_view text);
  /// Returns what was read and empties the reader.
  Machine take();

 private:
  bool header(std::string_view text);
  bool hex(std::string_view text);
  bool property(std::string_view text);
  void memory(std::string_view text);
  void express(std::string_view text);
  void finish_function();
  Function& at_path(std::string_view path);

  Machine machine_;
  LspciTree tree_;
  std::map<std::string, std::size_t> by_path_;
  std::optional<std::size_t> current_;
  std::vector<std::uint8_t> bytes_;  ///< configuration space of the current function
  bool listed_ = false;
  bool verbose_ = false;
};

/// The bits of "ACSCtl: SrcValid+ ReqRedir-..."; nullopt when none is named.
std::optional<Acs> parse_acs_line(std::string_view text);

/// Parses a size as lspci prints it: "64G", "16M", "512K", "128".
std::optional<Bytes> parse_lspci_size(std::string_view text);

/// Parses "Speed 16GT/s, Width x16 (ok)"; nullopt for "Speed unknown" and the like.
std::optional<PcieLink> parse_lspci_link(std::string_view text);

/// Sets class, id and text of a function from "3D controller [0302]: NVIDIA ... [10de:2330] (rev
/// a1)".
void read_lspci_description(std::string_view text, bool with_class, Function& function);

}  // namespace gdr::observed
