#include <fmt/format.h>

#include <map>
#include <regex>
#include <set>

#include "doctor/gather.hpp"
#include "topology/import/text.hpp"

namespace gdr::doctor {
namespace {

/// Equal texts get equal replacements; each kind counts for itself.
class Replacer {
 public:
  explicit Replacer(std::string host) : host_(std::move(host)) {}

  std::string operator()(const std::string& text) {
    // One pass, so that what was put in is not taken for something else again.
    static const std::regex pattern(
        "((?:GPU-|MIG-)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})"  // UUID
        "|\\b((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\\b"                                                      // GID
        "|\\b((?:[0-9a-f]{2}:){5,19}[0-9a-f]{2})\\b"                                                   // MAC
        "|\\b([0-9a-f]{4}:[0-9a-f]{4}:[0-9a-f]{4}:[0-9a-f]{4}|0x[0-9a-f]{16})\\b"                       // GUID
        "|\\b((?:[0-9]{1,3}\\.){3}[0-9]{1,3})\\b");                                                    // IPv4
    std::string out;
    auto last = text.begin();
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
      out.append(last, text.begin() + at->position());
      out += replacement(*at);
      last = text.begin() + at->position() + at->length();
    }
    out.append(last, text.end());
    if (host_.size() >= 3)
      for (auto at = out.find(host_); at != std::string::npos; at = out.find(host_, at + 4)) out.replace(at, host_.size(), "host");
    return out;
  }

 private:
  std::string replacement(const std::smatch& match) {
    const std::string found = match.str();
    if (match[1].matched) return numbered(uuids_, found, [](std::size_t n) { return fmt::format("uuid-{}", n); });
    if (match[2].matched) return new_gid(found);
    if (match[3].matched) return numbered(macs_, found, [](std::size_t n) { return fmt::format("02:00:00:00:{:02x}:{:02x}", n >> 8U & 0xffU, n & 0xffU); });
    if (match[4].matched) return numbered(guids_, found, [](std::size_t n) { return fmt::format("0000:0000:0000:{:04x}", n & 0xffffU); });
    if (found == "127.0.0.1" || found == "0.0.0.0") return found;
    return numbered(ips_, found, [](std::size_t n) { return fmt::format("192.0.2.{}", n & 0xffU); });
  }
  template <typename Make>
  std::string numbered(std::map<std::string, std::size_t>& known, const std::string& found, Make make) {
    return make(known.try_emplace(found, known.size() + 1).first->second);
  }
  /// What kind of GID it is stays: link-local, IPv4 or another, and empty slots.
  std::string new_gid(const std::string& found) {
    if (found == "0000:0000:0000:0000:0000:0000:0000:0000") return found;
    return numbered(gids_, found, [&](std::size_t n) {
      const bool ipv4 = found.starts_with("0000:0000:0000:0000:0000:ffff:");
      return ipv4 ? fmt::format("0000:0000:0000:0000:0000:ffff:c000:{:04x}", 0x200 + (n & 0xffU)) : fmt::format("{}:0000:0000:0000:0000:0000:0000:{:04x}", found.substr(0, 4), n & 0xffffU);
    });
  }

  std::string host_;
  std::map<std::string, std::size_t> uuids_, gids_, macs_, guids_, ips_;
};

}  // namespace

void make_anonymous(observed::Capture& capture, const std::string& host_name) {
  Replacer replace(host_name);
  observed::CapturedFiles files;
  for (const auto& [path, content] : capture.files.files()) {
    // Configuration space is binary, and a serial number in it (extended capability 0x0003) is cleared.
    if (path.ends_with("/config")) {
      std::string cleared = content;
      for (std::size_t at = 0x100, steps = 0; at >= 0x100 && at + 12 <= cleared.size() && steps < 64; ++steps) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(cleared[i])); };
        if ((byte(at) | byte(at + 1) << 8U) == 0x0003) std::fill_n(cleared.begin() + static_cast<std::ptrdiff_t>(at) + 4, 8, '\0');
        at = (byte(at + 2) >> 4U | byte(at + 3) << 4U) & 0xffcU;
      }
      files.add_file(path, cleared);
      continue;
    }
    const bool addresses = path.find("/resource") != std::string::npos || path == "proc/cpuinfo";
    files.add_file(path, addresses ? content : replace(content));
  }
  for (const auto& [path, target] : capture.files.links()) files.add_link(path, "/" + target);
  capture.files = std::move(files);
  for (auto& [command, output] : capture.commands) output = replace(output);
}

}  // namespace gdr::doctor
