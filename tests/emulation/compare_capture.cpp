// compare_capture TOPOLOGY CAPTURE [SETTING...]: how a capture from a guest differs from the
// guest's one-host topology, with the settings that the guest was started with (h0/gpu0.ats=true).
// One line per difference; exit code 1 if there is one.
#include <cstdio>
#include <exception>

#include "src/import/machine.hpp"
#include "src/topology/topology_json.hpp"
#include "tests/support/machine_difference.hpp"

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: compare_capture TOPOLOGY CAPTURE [SETTING...]\n");
    return 2;
  }
  try {
    const gdr::ModelLibrary models(GDR_PROJECT_DIR "/models");
    const std::vector<std::string> settings(arguments + 3, arguments + count);
    const gdr::Topology original = gdr::load_topology(arguments[1], gdr::parse_settings(settings));
    const gdr::Topology seen = gdr::import_machine(std::vector<std::string>{arguments[2]}, &models);
    const auto lines = gdr::test::differences(original, seen, models);
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
    return lines.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_capture: %s\n", error.what());
    return 2;
  }
}
