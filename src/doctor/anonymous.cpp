#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>

#include "src/common/terminal_text.hpp"
#include "src/doctor/gather.hpp"

namespace gdr::doctor {
namespace {

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// "node7.example.com" and "node7". Short names are left alone: they are too common as words.
std::vector<std::string> parts_of(const std::string& host) {
  constexpr std::size_t shortest = 3;
  std::vector<std::string> names;
  for (const std::string& name : {host, host.substr(0, host.find('.'))})
    if (name.size() >= shortest && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

/// Equal texts get equal replacements; each kind has its own counter.
class Replacer {
 public:
  explicit Replacer(const std::string& host) : hosts_(parts_of(host)) {}

  std::string operator()(const std::string& text) {
    // A single pass, so that a replacement is never replaced again.
    static const std::regex pattern(
        "((?:GPU-|MIG-)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
        ")"                                                                           // UUID
        "|\\b((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\\b"                                     // GID
        "|\\b((?:[0-9a-fA-F]{2}:){5,19}[0-9a-fA-F]{2})\\b"                            // MAC
        "|\\b([0-9a-f]{4}:[0-9a-f]{4}:[0-9a-f]{4}:[0-9a-f]{4}|0x[0-9a-fA-F]{16})\\b"  // GUID
        "|\\b((?:[0-9]{1,3}\\.){3}[0-9]{1,3})\\b"                                     // IPv4
        "|\\b((?:en|wl|ib|roce|iw|rdma)x[0-9a-f]{12,16})\\b"  // named for a MAC or GUID
        "|\\b((?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6})\\b");  // IPv6, shortened
    std::string out;
    auto last = text.begin();
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
      out.append(last, text.begin() + at->position());
      const auto position = static_cast<std::size_t>(at->position());
      // "MLNX_OFED_LINUX-5.8-1.1.2.1" is a version.
      const bool version = (*at)[5].matched && position > 0 && text[position - 1] == '-';
      out += version ? at->str() : replacement(*at);
      last = text.begin() + at->position() + at->length();
    }
    out.append(last, text.end());
    for (const std::string& name : hosts_) replace_word(out, name);
    return out;
  }

 private:
  static void replace_word(std::string& text, const std::string& word) {
    static constexpr std::string_view instead = "host";
    const auto same = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) ==
             std::tolower(static_cast<unsigned char>(b));
    };
    const auto next = [&](std::size_t from) {
      const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(),
                                     word.begin(), word.end(), same);
      return found == text.end() ? std::string::npos
                                 : static_cast<std::size_t>(found - text.begin());
    };
    for (auto at = next(0); at != std::string::npos; at = next(at)) {
      const auto end = at + word.size();
      const bool whole = (at == 0 || !is_word_character(text[at - 1])) &&
                         (end == text.size() || !is_word_character(text[end]));
      if (whole) text.replace(at, word.size(), instead);
      at += whole ? instead.size() : word.size();
    }
  }
  std::string replacement(const std::smatch& match) {
    const std::string found = match.str();
    if (match[1].matched)
      return numbered(uuids_, found, [](std::size_t n) { return fmt::format("uuid-{}", n); });
    if (match[2].matched) return new_gid(found);
    if (match[3].matched)
      return numbered(macs_, found, [](std::size_t n) {
        return fmt::format("02:00:00:00:{:02x}:{:02x}", n >> 8U & 0xffU, n & 0xffU);
      });
    if (match[4].matched)
      return numbered(guids_, found, [](std::size_t n) {
        return fmt::format("0000:0000:0000:{:04x}", n & 0xffffU);
      });
    if (match[6].matched)
      return numbered(interfaces_, found, [&](std::size_t n) {
        return fmt::format("{}{:012x}", found.substr(0, found.find('x') + 1), 0x020000000000U + n);
      });
    if (match[7].matched)
      return numbered(ips_, found, [&](std::size_t n) {
        return fmt::format("{}::{:x}", found.starts_with("fe80") ? "fe80" : "2001:db8", n);
      });
    if (found == "127.0.0.1" || found == "0.0.0.0") return found;
    return numbered(ips_, found,
                    [](std::size_t n) { return fmt::format("192.0.2.{}", n & 0xffU); });
  }
  template <typename Make>
  std::string numbered(std::map<std::string, std::size_t>& known, const std::string& found,
                       Make make) {
    return make(known.try_emplace(found, known.size() + 1).first->second);
  }
  /// Keeps the kind of the GID: link-local, IPv4 or other; empty slots stay empty.
  std::string new_gid(const std::string& found) {
    if (found == "0000:0000:0000:0000:0000:0000:0000:0000") return found;
    return numbered(gids_, found, [&](std::size_t n) {
      const bool ipv4 = found.starts_with("0000:0000:0000:0000:0000:ffff:");
      return ipv4 ? fmt::format("0000:0000:0000:0000:0000:ffff:c000:{:04x}", 0x200 + (n & 0xffU))
                  : fmt::format("{}:0000:0000:0000:0000:0000:0000:{:04x}", found.substr(0, 4),
                                n & 0xffffU);
    });
  }

  std::vector<std::string> hosts_;
  std::map<std::string, std::size_t> uuids_, gids_, macs_, guids_, ips_, interfaces_;
};

/// Keeps the kernel parameters that rules or readers need; others name disks, servers and the host.
std::string plain_parameters(std::string_view line) {
  static constexpr std::array<std::string_view, 8> kept{
      "iommu",     "intel_iommu",        "amd_iommu", "pci",
      "hugepages", "default_hugepagesz", "numa",      "mitigations"};
  std::string text;
  for (const std::string_view word : text::split_words(line))
    if (std::any_of(kept.begin(), kept.end(),
                    [&](std::string_view start) { return word.starts_with(start); }))
      text += (text.empty() ? "" : " ") + std::string(word);
  return text + "\n";
}

/// Keeps the mounts that a rule checks, without the names of disks, servers and folders.
std::string plain_mounts(std::string_view content) {
  std::string text;
  std::size_t number = 0;
  for (const std::string_view line : text::lines(content)) {
    const auto words = text::split_words(line);
    if (words.size() < 4 || (words[2] != "ext4" && words[2] != "xfs")) continue;
    // Keep only the options that matter to GPUDirect Storage.
    std::string options = words[3].starts_with("ro") ? "ro" : "rw";
    if (const auto data = words[3].find("data="); data != std::string_view::npos)
      options.append(",").append(words[3].substr(data, words[3].find(',', data) - data));
    text +=
        fmt::format("disk {} {} {}\n", words[1] == "/" ? "/" : fmt::format("/mount-{}", ++number),
                    words[2], options);
  }
  return text;
}

/// Removes who built the kernel and where: "Linux version 6.1.0 (someone@somewhere) (gcc ...".
std::string without_builder(const std::string& version) {
  static const std::regex builder("\\([^()@]*@[^()]*\\)");
  return std::regex_replace(version, builder, "(builder)");
}

}  // namespace

void make_anonymous(observed::Capture& capture, const std::string& host_name) {
  Replacer replace(host_name);
  // Interface names are folder names as well.
  const auto with_interfaces = [&](const std::string& path) {
    static constexpr std::array<std::string_view, 6> starts{"/enx",   "/wlx", "/ibx",
                                                            "/rocex", "/iwx", "/rdmax"};
    const bool named = std::any_of(starts.begin(), starts.end(), [&](std::string_view start) {
      return path.find(start) != std::string::npos;
    });
    return named ? replace(path) : path;
  };
  const auto plain = [&](const std::string& path, const std::string& content) {
    if (path == "proc/cmdline") return replace(plain_parameters(content));
    if (path == "proc/mounts") return replace(plain_mounts(content));
    if (path == "proc/version") return replace(without_builder(content));
    // Nothing in these files is an address, even if it looks like one.
    return path.find("/resource") != std::string::npos || path == "proc/cpuinfo" ? content
                                                                                 : replace(content);
  };
  observed::CapturedFiles files;
  for (const auto& [path, content] : capture.files.files()) {
    // Configuration space is binary: clear only its serial number (extended capability 0x0003).
    if (path.ends_with("/config")) {
      std::string cleared = content;
      for (std::size_t at = 0x100, steps = 0;
           at >= 0x100 && at + 12 <= cleared.size() && steps < 64; ++steps) {
        const auto byte = [&](std::size_t i) {
          return static_cast<unsigned>(static_cast<unsigned char>(cleared[i]));
        };
        if ((byte(at) | byte(at + 1) << 8U) == 0x0003)
          std::fill_n(cleared.begin() + static_cast<std::ptrdiff_t>(at) + 4, 8, '\0');
        at = (byte(at + 2) >> 4U | byte(at + 3) << 4U) & 0xffcU;
      }
      files.add_file(path, cleared);
      continue;
    }
    files.add_file(with_interfaces(path), plain(path, content));
  }
  for (const auto& [path, target] : capture.files.links())
    files.add_link(with_interfaces(path), "/" + with_interfaces(target));
  capture.files = std::move(files);
  std::map<std::string, std::string> commands;
  for (const auto& [command, output] : capture.commands)
    commands[replace(command)] = replace(output);
  capture.commands = std::move(commands);
}

}  // namespace gdr::doctor
