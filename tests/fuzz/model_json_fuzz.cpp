#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "src/catalog/model_library.hpp"
#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace {

/// A folder with one model of each kind, made once; /dev/shm keeps writing cheap.
const std::string& folder() {
  // Never destroyed, since the exit handler needs it.
  static const std::string& path = *new std::string([] {
    const bool shm = std::filesystem::is_directory("/dev/shm");
    std::string name =
        (shm ? std::string("/dev/shm") : std::filesystem::temp_directory_path().string()) +
        "/gdr-fuzz-XXXXXX";
    gdr::check(mkdtemp(name.data()) != nullptr, "no temporary folder");
    for (const char* kind : {"cpu", "switch", "gpu", "nic", "nvme", "nvlink", "fabric"})
      std::filesystem::create_directory(name + "/" + kind);
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return name;
  }());
  return path;
}

template <typename Load>
void load(std::string_view text, const char* kind, Load read) {
  const std::string file = folder() + "/" + kind + "/m.json";
  gdr::write_file(file, text);
  try {
    read(gdr::ModelLibrary(folder()));
  } catch (const gdr::InputError& error) {
    gdr::check(std::string_view(error.what()).find('\n') == std::string_view::npos,
               "an error of more than one line");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // One reader per input, which the text names; otherwise seven readers would share each input's
  // time.
  if (text.find("\"cpu\"") != std::string_view::npos)
    load(text, "cpu", [](const auto& models) { (void)models.cpu("m"); });
  else if (text.find("\"gpu\"") != std::string_view::npos)
    load(text, "gpu", [](const auto& models) { (void)models.gpu("m"); });
  else if (text.find("\"nic\"") != std::string_view::npos)
    load(text, "nic", [](const auto& models) { (void)models.nic("m"); });
  else load(text, "switch", [](const auto& models) { (void)models.pci_switch("m"); });
  return 0;
}
