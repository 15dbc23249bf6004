#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/topology/topology_json.hpp"

/// The text up to the first NUL is a topology file, the rest a --set.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto end = input.find('\0');
  try {
    std::vector<gdr::Setting> settings;
    if (end != std::string_view::npos)
      settings.push_back(gdr::parse_setting(input.substr(end + 1)));
    gdr::json::Value document = gdr::json::parse(input.substr(0, end), "fuzz");
    // A whole number may lose its decimal point (1.0 becomes 1); nothing else may change.
    const std::string written = gdr::json::dump(document);
    gdr::check(gdr::json::dump(gdr::json::parse(written, "dump")) == written,
               "the text differs after writing, reading and writing");
    // The folder does not exist, so that no server file is found.
    const gdr::Topology topology =
        gdr::read_topology(std::move(document), "fuzz", "/nonexistent", settings);
    gdr::check(gdr::read_topology(to_json(topology), "again", "") == topology,
               "the topology differs after writing and reading");
  } catch (const gdr::InputError& error) {
    gdr::check(std::string_view(error.what()).find('\n') == std::string_view::npos,
               "an error of more than one line");
  }
  return 0;
}
