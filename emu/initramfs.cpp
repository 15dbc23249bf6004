#include "emu/initramfs.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "common/error.hpp"
#include "common/file.hpp"

namespace gdr::emu {
namespace {

/// What a guest needs before it sees the machine's files, and RDMA. rdma_rxe asks for the algorithm crc32 by name, which no
/// dependency tells.
const std::vector<std::string> wanted_modules{"virtio_pci", "qemu_fw_cfg",    "9pnet_virtio", "9p",
                                              "overlay",    "virtio_console", "virtio_net",   "crc32_generic",
                                              "rdma_rxe",   "ib_uverbs",      "rdma_ucm"};

/// A module's name from its file: dashes and underscores are the same.
std::string module_name(const std::string& file) {
  std::string name = std::filesystem::path(file).filename().string();
  name = name.substr(0, name.find(".ko"));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), archive_(archive_write_new(), archive_write_free) {
    archive_write_set_format_cpio_newc(archive_.get());
    if (archive_write_open_filename(archive_.get(), path.c_str()) != ARCHIVE_OK) fail();
  }

  void folder(const std::string& name) { add(name, S_IFDIR | 0755, ""); }
  void file(const std::string& name, const std::string& content) { add(name, S_IFREG | 0755, content); }
  void close() {
    if (archive_write_close(archive_.get()) != ARCHIVE_OK) fail();
  }

 private:
  [[noreturn]] void fail() {
    const char* reason = archive_error_string(archive_.get());
    throw InputError(fmt::format("{}: cannot write it: {}", path_, reason != nullptr ? reason : "no reason given"));
  }

  void add(const std::string& name, mode_t mode, const std::string& content) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_mode(entry.get(), mode);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    if (archive_write_header(archive_.get(), entry.get()) != ARCHIVE_OK) fail();
    if (!content.empty() &&
        archive_write_data(archive_.get(), content.data(), content.size()) != static_cast<la_ssize_t>(content.size()))
      fail();
  }

  std::string path_;
  std::unique_ptr<archive, decltype(&archive_write_free)> archive_;
};

}  // namespace

std::vector<std::string> load_order(std::string_view modules_dep, const std::vector<std::string>& wanted) {
  // "FILE: FILE..." where the files behind the colon are needed, the one to be loaded first last.
  std::map<std::string, std::vector<std::string>> lines;
  std::istringstream text{std::string(modules_dep)};
  for (std::string line; std::getline(text, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::vector<std::string> files{line.substr(0, colon)};
    std::istringstream needed(line.substr(colon + 1));
    for (std::string file; needed >> file;) files.push_back(file);
    lines.emplace(module_name(files.front()), std::move(files));
  }
  std::vector<std::string> order;
  for (const std::string& name : wanted) {
    const auto found = lines.find(module_name(name));
    if (found == lines.end()) throw InputError(fmt::format("the guest's kernel has no module {}", name));
    for (auto file = found->second.rbegin(); file != found->second.rend(); ++file)
      if (std::find(order.begin(), order.end(), *file) == order.end()) order.push_back(*file);
  }
  return order;
}

void write_initramfs(const std::string& path, const InitramfsParts& parts) {
  Archive archive(path);
  for (const char* folder : {"bin", "dev", "modules", "proc", "sys"}) archive.folder(folder);
  archive.file("init", read_file(parts.scripts + "/init"));
  archive.file("start", read_file(parts.scripts + "/start"));
  archive.file("modprobe", read_file(parts.scripts + "/modprobe"));
  archive.file("bin/busybox", read_file(parts.busybox));
  std::string order;
  for (const std::string& file : load_order(read_file(parts.modules + "/modules.dep"), wanted_modules)) {
    const std::string name = std::filesystem::path(file).filename().string();
    archive.file("modules/" + name, read_file(parts.modules + "/" + file));
    order += name + "\n";
  }
  archive.file("modules/order", order);
  const std::filesystem::path built = std::filesystem::path(parts.gpu_module).parent_path();
  for (const char* name : {"gdr_fakegpu.ko", "gdr_pci_overlay.ko", "nvidia_peermem.ko"})
    archive.file(fmt::format("modules/{}", name), read_file(built / name));
  archive.close();
}

}  // namespace gdr::emu
