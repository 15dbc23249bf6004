#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gdr::observed {

/// Files of /sys and /proc that describe a machine, by path without the leading slash. They come
/// from a live machine, a folder with copies, or a tar archive of such a folder. Contents may be
/// binary.
class CapturedFiles {
 public:
  /// Reads a folder that has sys/ (or is one), but only the files that importers need. Throws
  /// InputError.
  static CapturedFiles of_folder(const std::string& folder);
  /// Reads a tar archive, compressed or not. Throws InputError if it is not an archive or has more
  /// than 64 MiB of files.
  static CapturedFiles of_archive(std::string_view bytes, const std::string& name);

  void add_file(std::string path, std::string content);
  /// `target` is the link's own text: relative to its folder, or absolute.
  void add_link(const std::string& path, const std::string& target);

  /// The content of a file, following links; nullptr if it is missing.
  [[nodiscard]] const std::string* file(std::string_view path) const;
  /// The first line of a file, trimmed; empty if the file is missing.
  [[nodiscard]] std::string line(std::string_view path) const;
  /// The sorted names in a folder.
  [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
  /// The path with all links resolved; empty if it is missing.
  [[nodiscard]] std::string resolve(std::string_view path) const;
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& files() const {
    return files_;
  }
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& links() const {
    return links_;
  }

 private:
  [[nodiscard]] bool exists(std::string_view path) const;
  void add_parents(const std::string& path);

  std::map<std::string, std::string, std::less<>> files_;
  std::map<std::string, std::string, std::less<>> links_;  ///< targets as paths from the root
  std::map<std::string, std::set<std::string>, std::less<>> folders_;
};

/// The network interfaces of the function at a path, from its folder net or that of its virtio
/// device.
std::vector<std::string> interfaces_of(const CapturedFiles& files, const std::string& function);

}  // namespace gdr::observed
