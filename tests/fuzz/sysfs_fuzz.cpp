#include <cstddef>
#include <cstdint>

#include "src/import/captured_files.hpp"
#include "src/import/config_space.hpp"
#include "src/import/sysfs.hpp"
#include "tests/fuzz/import_fuzz.hpp"

/// Lines "PATH=CONTENT" are files of /sys, "PATH>TARGET" links; the configuration space of one
/// function is the input itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gdr::observed::CapturedFiles files;
  const std::string gpu = "sys/devices/pci0000:00/0000:00:01.0";
  files.add_link("sys/bus/pci/devices/0000:00:01.0", "../../../devices/pci0000:00/0000:00:01.0");
  files.add_file(gpu + "/config", std::string(text));
  std::size_t at = 0;
  while (at < size) {
    const std::size_t end = std::min(text.find('\n', at), size);
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const auto sign = line.find_first_of("=>");
    if (sign == std::string_view::npos || sign == 0) continue;
    const std::string path(line.substr(0, sign));
    const std::string value(line.substr(sign + 1));
    if (line[sign] == '=') files.add_file(path, value);
    else files.add_link(path, value);
  }
  (void)gdr::observed::read_sysfs(files);
  import_or_refuse(std::string(text), "fuzz.tar");
  return 0;
}
