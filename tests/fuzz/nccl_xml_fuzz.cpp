#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/topology/topology_json.hpp"

/// If the importer accepts the input, the loader must accept the topology.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gdr::Topology topology;
  try {
    topology = gdr::import_nccl_xml({gdr::NamedText{std::string(text), "fuzz.xml"}});
  } catch (const gdr::InputError& error) {
    gdr::check(std::string_view(error.what()).find('\n') == std::string_view::npos,
               "an error of more than one line");
    return 0;
  }
  gdr::check(gdr::read_topology(to_json(topology), "again", "") == topology,
             "the topology differs after writing and reading");
  return 0;
}
