#include "emu/image/debian_packages.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "emu/process/process.hpp"
#include "src/common/error.hpp"

namespace gdr::emu {
namespace {

namespace fs = std::filesystem;

constexpr const char* purpose = "the guest's kernel package";

/// The first "NAME: value" in the output of apt-cache.
std::string field(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + ": ")) return line.substr(name.size() + 2);
  return "";
}

}  // namespace

std::string dependency_named(const std::string& depends, const std::string& prefix,
                             const std::string& suffix) {
  std::istringstream items(depends);
  for (std::string item; std::getline(items, item, ',');) {
    item.erase(0, item.find_first_not_of(' '));
    item = item.substr(0, item.find_first_of(" (|"));
    if (item.starts_with(prefix) && item.ends_with(suffix)) return item;
  }
  return "";
}

DebianPackages::DebianPackages(std::string folder, Signals& signals)
    : folder_(std::move(folder)), signals_(signals) {}

std::vector<std::string> DebianPackages::apt(const std::string& program,
                                             std::vector<std::string> arguments) const {
  std::vector<std::string> all{program};
  if (own_lists_) {
    for (const std::string& option : {"Dir::State=" + folder_ + "/apt/state",
                                      "Dir::State::lists=" + folder_ + "/apt/state/lists",
                                      "Dir::Cache=" + folder_ + "/apt/cache",
                                      std::string("Dir::State::status=/var/lib/dpkg/status")}) {
      all.emplace_back("-o");
      all.push_back(option);
    }
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

void DebianPackages::update() {
  own_lists_ = true;
  fs::create_directories(folder_ + "/apt/state/lists/partial");
  fs::create_directories(folder_ + "/apt/cache/archives/partial");
  // Without this option an unreachable source is only a warning.
  run_or_throw(apt("apt-get", {"update", "-q", "-o", "APT::Update::Error-Mode=any"}), signals_,
               purpose);
}

std::string DebianPackages::show(const std::string& package) {
  const auto arguments = apt("apt-cache", {"show", "--no-all-versions", package});
  if (!is_in_path(arguments[0]))
    throw InputError(
        fmt::format("{}: the program apt-cache is not installed, and gdr cannot download the "
                    "package without apt",
                    purpose));
  const Finished finished = run_to_end(arguments, signals_);
  return finished.exit_code == 0 ? finished.output : "";
}

DebianPackages::KernelPackages DebianPackages::find_kernel() {
  std::string image = show("linux-image-amd64");
  if (image.empty() && !own_lists_) {
    update();
    image = show("linux-image-amd64");
  }
  KernelPackages found;
  found.version = field(image, "Version");
  const std::string name = dependency_named(field(image, "Depends"), "linux-image-");
  if (name.empty())
    throw InputError(
        fmt::format("{}: apt knows no linux-image-amd64; Debian's sources are needed", purpose));
  found.release = name.substr(std::string("linux-image-").size());
  const std::string headers = "linux-headers-" + found.release;
  const std::string depends = field(show(headers + "=" + found.version), "Depends");
  for (const std::string& package :
       {name, headers, dependency_named(depends, "linux-headers-", "-common"),
        dependency_named(depends, "linux-kbuild-")}) {
    if (package.empty())
      throw InputError(
          fmt::format("{}: apt does not know what {} {} needs", purpose, headers, found.version));
    found.names.push_back(package + "=" + found.version);
  }
  found.names.emplace_back("busybox-static");
  return found;
}

void DebianPackages::unpack(const std::vector<std::string>& names, const std::string& root) {
  const std::string folder = folder_ + "/packages";
  fs::create_directories(folder);
  fs::create_directories(root);
  // apt-get download writes into the current folder.
  std::vector<std::string> command{"sh", "-c", "cd \"$0\" && exec \"$@\"", folder};
  std::vector<std::string> download{"download", "-q"};
  download.insert(download.end(), names.begin(), names.end());
  for (std::string& word : apt("apt-get", download)) command.push_back(std::move(word));
  run_or_throw(command, signals_, purpose);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".deb")
      run_or_throw({"dpkg", "-x", entry.path().string(), root}, signals_, purpose);
  fs::remove_all(folder);
}

}  // namespace gdr::emu
