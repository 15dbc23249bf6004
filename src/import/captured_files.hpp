#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gdr::observed {

/// Files of /sys and /proc that say how a machine is built, by path without the leading slash: read
/// from a live machine, from a folder into which they were copied, or from a tar archive of such a
/// folder. Contents may be binary.
class CapturedFiles {
 public:
  /// From a folder that has sys/ (or is one): reads what the importers ask for and nothing else.
  /// Throws InputError.
  static CapturedFiles of_folder(const std::string& folder);
  /// From a tar archive, compressed or not. Throws InputError: no archive, or more than 64 MiB of
  /// files.
  static CapturedFiles of_archive(std::string_view bytes, const std::string& name);

  void add_file(std::string path, std::string content);
  /// `target` as the link has it: relative to its folder, or absolute.
  void add_link(const std::string& path, const std::string& target);

  /// The content, links followed; nullptr: not there.
  [[nodiscard]] const std::string* file(std::string_view path) const;
  /// The first line, without blanks around it; empty: not there.
  [[nodiscard]] std::string line(std::string_view path) const;
  /// Names in a folder, sorted.
  [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
  /// The path with all links followed; empty: not there.
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

/// Names of the network interfaces of a function at a path: in its folder net, or below its virtio
/// device.
std::vector<std::string> interfaces_of(const CapturedFiles& files, const std::string& function);

}  // namespace gdr::observed
