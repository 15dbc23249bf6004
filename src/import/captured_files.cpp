#include "src/import/captured_files.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "src/common/error.hpp"
#include "src/common/terminal_text.hpp"

namespace gdr::observed {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = 64U << 20U;
constexpr std::size_t most_entries = 200'000;

/// Turns "a/./b/../c" into "a/c".
std::string normal(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part != "..") parts.push_back(part);
    else if (!parts.empty()) parts.pop_back();
  }
  std::string result;
  for (const std::string_view part : parts)
    result += (result.empty() ? "" : "/") + std::string(part);
  return result;
}

std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// Reads at most `most` bytes; sysfs files report no size.
std::optional<std::string> read_some(const fs::path& path, std::size_t most) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string content(most, '\0');
  in.read(content.data(), static_cast<std::streamsize>(most));
  content.resize(static_cast<std::size_t>(in.gcount()));
  return content;
}

/// Reads a live or copied tree into `files`.
class FolderReader {
 public:
  FolderReader(fs::path root, CapturedFiles& files) : root_(std::move(root)), files_(files) {}

  void read() {
    devices();
    for (const char* folder : {"sys/class/infiniband", "sys/class/net", "sys/class/iommu"})
      links(folder);
    infiniband();
    nodes();
    for (const char* path :
         {"proc/cpuinfo", "proc/cmdline", "proc/version", "proc/modules",
          "proc/driver/nvidia/version", "proc/mounts", "sys/class/dmi/id/sys_vendor",
          "sys/class/dmi/id/product_name", "sys/class/dmi/id/bios_version",
          "sys/kernel/mm/memory_peers/nv_mem/version",
          "sys/kernel/mm/memory_peers/nv_mem_nc/version", "sys/module/nvidia_peermem/version",
          "sys/devices/virtual/dmi/id/sys_vendor", "sys/devices/virtual/dmi/id/product_name",
          "proc/self/limits", "proc/sys/kernel/osrelease"})
      file(path, 1U << 20U);
  }

 private:
  void file(const std::string& path, std::size_t most = 4096) {
    std::error_code error;
    const fs::path full = root_ / path;
    if (!fs::is_regular_file(full, error)) return;
    if (auto content = read_some(full, most)) files_.add_file(path, std::move(*content));
  }
  void link(const std::string& path) {
    std::error_code error;
    const fs::path target = fs::read_symlink(root_ / path, error);
    if (!error) files_.add_link(path, target.string());
  }
  std::vector<std::string> names(const std::string& path) const {
    std::error_code error;
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(root_ / path, error))
      found.push_back(entry.path().filename().string());
    return found;
  }
  void links(const std::string& folder) {
    for (const std::string& name : names(folder)) link(folder + "/" + name);
  }

  void devices() {
    for (const std::string& name : names("sys/bus/pci/devices")) {
      const std::string from = "sys/bus/pci/devices/" + name;
      link(from);
      const std::string path = files_.resolve(from).empty() ? target(from) : files_.resolve(from);
      if (path.empty()) continue;
      for (const char* leaf :
           {"vendor", "device", "class", "numa_node", "resource", "config", "current_link_speed",
            "current_link_width", "max_link_speed", "max_link_width", "revision",
            "subsystem_vendor", "subsystem_device"})
        file(path + "/" + leaf);
      for (const char* leaf : {"iommu_group", "driver", "physfn"}) link(path + "/" + leaf);
      std::vector<std::string> folders{"infiniband", "net"};
      for (const std::string& part : names(path))
        if (part.starts_with("virtio")) folders.push_back(part + "/net");
      for (const std::string& folder : folders)
        for (const std::string& child : names(path + "/" + folder))
          files_.add_file(path + "/" + folder + "/" + child + "/.", "");
      const std::string group = path + "/iommu_group/type";
      file(group);
    }
  }
  [[nodiscard]] std::string target(const std::string& link) const {
    const auto found = files_.links().find(link);
    return found != files_.links().end() ? found->second : std::string();
  }
  void infiniband() {
    for (const std::string& name : names("sys/class/infiniband")) {
      const std::string device = "sys/class/infiniband/" + name;
      std::string path = target(device);
      if (path.empty()) path = device;
      link(path + "/device");
      for (const std::string& port : names(path + "/ports")) {
        const std::string at = path + "/ports/" + port;
        for (const char* leaf : {"link_layer", "rate", "state"}) file(at + "/" + leaf);
        for (const std::string& index : names(at + "/gids")) {
          if (empty_gid(at + "/gids/" + index)) continue;
          file(at + "/gids/" + index);
          file(at + "/gid_attrs/types/" + index);
          file(at + "/gid_attrs/ndevs/" + index);
        }
      }
    }
  }
  /// True for an empty entry, as most of the 256 or more entries of a GID table are.
  [[nodiscard]] bool empty_gid(const std::string& path) const {
    constexpr std::size_t longest = 40;
    const auto gid = read_some(root_ / path, longest);
    return !gid || gid->find_first_not_of("0:\n") == std::string::npos;
  }
  void nodes() {
    for (const std::string& name : names("sys/devices/system/node"))
      if (name.starts_with("node")) file("sys/devices/system/node/" + name + "/cpulist");
    for (const std::string& name : names("sys/devices/system/cpu"))
      if (name.starts_with("cpu"))
        file("sys/devices/system/cpu/" + name + "/topology/physical_package_id");
  }

  fs::path root_;
  CapturedFiles& files_;
};

}  // namespace

void CapturedFiles::add_parents(const std::string& path) {
  for (std::string_view at = path; !at.empty(); at = parent_of(at))
    if (!folders_[std::string(parent_of(at))].insert(std::string(name_of(at))).second) return;
}

void CapturedFiles::add_file(std::string path, std::string content) {
  path = normal(path);
  add_parents(path);
  files_[path] = std::move(content);
}

void CapturedFiles::add_link(const std::string& path, const std::string& target) {
  const std::string from = normal(path);
  add_parents(from);
  links_[from] =
      normal(target.starts_with('/') ? target : std::string(parent_of(from)) + "/" + target);
}

bool CapturedFiles::exists(std::string_view path) const {
  return files_.contains(path) || folders_.contains(path);
}

std::string CapturedFiles::resolve(std::string_view path) const {
  std::string at = normal(path);
  for (int steps = 0; steps < 40; ++steps) {
    if (exists(at)) return at;
    // Find the longest prefix of the path that is a link.
    bool followed = false;
    for (std::string_view part = at; !part.empty(); part = parent_of(part)) {
      const auto link = links_.find(part);
      if (link == links_.end()) continue;
      at = normal(link->second + "/" + at.substr(part.size()));
      followed = true;
      break;
    }
    if (!followed) return {};
  }
  return {};
}

const std::string* CapturedFiles::file(std::string_view path) const {
  const auto found = files_.find(resolve(path));
  return found != files_.end() ? &found->second : nullptr;
}

std::string CapturedFiles::line(std::string_view path) const {
  const std::string* content = file(path);
  return content == nullptr
             ? std::string()
             : std::string(text::trim(std::string_view(*content).substr(0, content->find('\n'))));
}

std::vector<std::string> CapturedFiles::list(std::string_view path) const {
  const std::string there = resolve(path);
  const auto found = there.empty() ? folders_.end() : folders_.find(there);
  return found == folders_.end()
             ? std::vector<std::string>()
             : std::vector<std::string>(found->second.begin(), found->second.end());
}

std::vector<std::string> interfaces_of(const CapturedFiles& files, const std::string& function) {
  std::vector<std::string> found = files.list(function + "/net");
  for (const std::string& part : files.list(function))
    if (part.starts_with("virtio"))
      for (const std::string& name : files.list(function + "/" + part + "/net"))
        found.push_back(name);
  return found;
}

CapturedFiles CapturedFiles::of_folder(const std::string& folder) {
  std::error_code error;
  fs::path root = folder;
  if (!fs::is_directory(root, error)) throw InputError(fmt::format("{}: not a folder", folder));
  const fs::path named = fs::weakly_canonical(root, error);
  if (!fs::is_directory(root / "sys", error) && fs::is_directory(root / "bus/pci", error))
    root = named.parent_path();
  if (!fs::is_directory(root / "sys/bus/pci/devices", error))
    throw InputError(
        fmt::format("{}: it has no sys/bus/pci/devices; give / for this machine, or a folder that "
                    "holds a copy of /sys",
                    folder));
  CapturedFiles files;
  FolderReader(root, files).read();
  return files;
}

CapturedFiles CapturedFiles::of_archive(std::string_view bytes, const std::string& name) {
  const std::unique_ptr<archive, decltype(&archive_read_free)> reader(archive_read_new(),
                                                                      &archive_read_free);
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_tar(reader.get());
  const auto refuse = [&](const char* what) {
    throw InputError(fmt::format("{}: {}", name, what));
  };
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    refuse("not a tar archive that can be read");
  CapturedFiles files;
  std::size_t total = 0;
  std::size_t entries = 0;
  archive_entry* entry = nullptr;
  for (int status = 0; (status = archive_read_next_header(reader.get(), &entry)) != ARCHIVE_EOF;) {
    if (status < ARCHIVE_WARN) refuse("a tar archive that is damaged or cut");
    if (++entries > most_entries) refuse("more than 200000 files");
    const char* path = archive_entry_pathname(entry);
    const std::string full = path != nullptr ? path : "";
    // Start paths at sys/ or proc/, whatever folder was packed.
    const auto start = std::min(("/" + full).find("/sys/"), ("/" + full).find("/proc/"));
    if (start == std::string::npos) continue;
    const std::string inside = full.substr(start);
    if (const char* target = archive_entry_symlink(entry); target != nullptr) {
      files.add_link(inside, target);
      continue;
    }
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string content(static_cast<std::size_t>(std::max<la_int64_t>(
                            0, std::min<la_int64_t>(archive_entry_size(entry), 1 << 20))),
                        '\0');
    const auto count = archive_read_data(reader.get(), content.data(), content.size());
    content.resize(static_cast<std::size_t>(std::max<la_ssize_t>(0, count)));
    total += content.size();
    if (total > most_bytes) refuse("more than 64 MiB of files");
    files.add_file(inside, std::move(content));
  }
  return files;
}

}  // namespace gdr::observed
