#include "emu/image/initramfs.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::emu {
namespace {

/// The name of a module's file; dashes count as underscores.
std::string module_name(const std::string& file) {
  std::string name = std::filesystem::path(file).filename().string();
  name = name.substr(0, name.find(".ko"));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// A module's file, decompressed if the kernel's package compressed it.
std::string module_content(const std::string& path) {
  if (path.ends_with(".ko")) return read_file(path);
  const std::unique_ptr<archive, decltype(&archive_read_free)> reader(archive_read_new(),
                                                                      archive_read_free);
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  std::string content;
  constexpr std::size_t block = 64U << 10U;
  char buffer[block];
  la_ssize_t got = -1;
  if (archive_read_open_filename(reader.get(), path.c_str(), block) == ARCHIVE_OK &&
      archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK)
    while ((got = archive_read_data(reader.get(), buffer, sizeof buffer)) > 0)
      content.append(buffer, static_cast<std::size_t>(got));
  if (got == 0) return content;
  const char* reason = archive_error_string(reader.get());
  throw InputError(fmt::format("{}: cannot unpack it: {}", path,
                               reason != nullptr ? reason : "no reason given"));
}

class Archive {
 public:
  explicit Archive(const std::string& path)
      : path_(path), archive_(archive_write_new(), archive_write_free) {
    archive_write_set_format_cpio_newc(archive_.get());
    if (archive_write_open_filename(archive_.get(), path.c_str()) != ARCHIVE_OK) fail();
  }

  void folder(const std::string& name) { add(name, S_IFDIR | 0755, ""); }
  void file(const std::string& name, const std::string& content) {
    add(name, S_IFREG | 0755, content);
  }
  void close() {
    if (archive_write_close(archive_.get()) != ARCHIVE_OK) fail();
  }

 private:
  [[noreturn]] void fail() {
    const char* reason = archive_error_string(archive_.get());
    throw InputError(fmt::format("{}: cannot write it: {}", path_,
                                 reason != nullptr ? reason : "no reason given"));
  }

  void add(const std::string& name, mode_t mode, const std::string& content) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_mode(entry.get(), mode);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    if (archive_write_header(archive_.get(), entry.get()) != ARCHIVE_OK) fail();
    if (!content.empty() && archive_write_data(archive_.get(), content.data(), content.size()) !=
                                static_cast<la_ssize_t>(content.size()))
      fail();
  }

  std::string path_;
  std::unique_ptr<archive, decltype(&archive_write_free)> archive_;
};

}  // namespace

const std::vector<std::string>& wanted_modules() {
  // rdma_rxe requests the algorithm crc32 by name, so no dependency lists it.
  static const std::vector<std::string> names{
      "virtio_pci", "qemu_fw_cfg",   "9pnet_virtio", "9p",        "overlay", "virtio_console",
      "virtio_net", "crc32_generic", "rdma_rxe",     "ib_uverbs", "rdma_ucm"};
  return names;
}

std::vector<std::string> load_order(std::string_view modules_dep,
                                    const std::vector<std::string>& wanted,
                                    std::string_view modules_builtin) {
  // "FILE: FILE...": the files after the colon are dependencies, the first to load comes last.
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
  std::set<std::string> builtin;
  std::istringstream builtin_text{std::string(modules_builtin)};
  for (std::string line; std::getline(builtin_text, line);) builtin.insert(module_name(line));
  std::vector<std::string> order;
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    const auto found = lines.find(module_name(name));
    if (found == lines.end()) {
      if (!builtin.contains(module_name(name))) missing.push_back(name);
      continue;
    }
    for (auto file = found->second.rbegin(); file != found->second.rend(); ++file)
      if (std::find(order.begin(), order.end(), *file) == order.end()) order.push_back(*file);
  }
  if (!missing.empty())
    throw InputError(fmt::format("the guest's kernel has no module{} {}",
                                 missing.size() == 1 ? "" : "s", fmt::join(missing, ", ")));
  return order;
}

std::vector<std::string> guest_modules(const std::string& modules) {
  std::error_code error;
  const bool has_builtin = std::filesystem::exists(modules + "/modules.builtin", error);
  return load_order(read_file(modules + "/modules.dep"), wanted_modules(),
                    has_builtin ? read_file(modules + "/modules.builtin") : "");
}

void write_initramfs(const std::string& path, const InitramfsParts& parts) {
  Archive archive(path);
  for (const char* folder : {"bin", "dev", "modules", "proc", "sys"}) archive.folder(folder);
  archive.file("init", read_file(parts.scripts + "/init"));
  archive.file("start", read_file(parts.scripts + "/start"));
  archive.file("modprobe", read_file(parts.scripts + "/modprobe"));
  archive.file("gdr-barrier", read_file(parts.scripts + "/gdr-barrier"));
  archive.file("bin/busybox", read_file(parts.busybox));
  std::string order;
  for (const std::string& file : guest_modules(parts.modules)) {
    std::string name = std::filesystem::path(file).filename().string();
    name = name.substr(0, name.find(".ko")) + ".ko";
    archive.file("modules/" + name, module_content(parts.modules + "/" + file));
    order += name + "\n";
  }
  archive.file("modules/order", order);
  if (!parts.gpu_module.empty()) {
    const std::filesystem::path built = std::filesystem::path(parts.gpu_module).parent_path();
    for (const char* name : {"gdr_fakegpu.ko", "gdr_pci_overlay.ko", "nvidia_peermem.ko"})
      archive.file(fmt::format("modules/{}", name), read_file(built / name));
  }
  archive.close();
}

}  // namespace gdr::emu
