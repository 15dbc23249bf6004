#include "src/import/host_facts.hpp"

#include <algorithm>

#include "src/common/terminal_text.hpp"

namespace gdr::observed {
namespace {

/// "6.8.0-45-generic", limited to what a topology file accepts.
std::string kernel_version(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9' ||
      text.find('.') == std::string_view::npos)
    return {};
  const bool good = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' ||
           c == '+' || c == '~';
  });
  return good && text.size() <= 80 ? std::string(text) : std::string();
}

/// The value after `key` and a colon, as in "Socket(s):  2".
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
  text = text::trim(text);
  if (!text.starts_with(key)) return std::nullopt;
  text = text::trim(text.substr(key.size()));
  if (!text.starts_with(':')) return std::nullopt;
  return text::trim(text.substr(1));
}

}  // namespace

std::optional<IommuMode> iommu_of_command_line(std::string_view text) {
  bool off = false;
  bool on = false;
  bool passthrough = false;
  for (std::string_view word : text::split_words(text)) {
    while (word.ends_with('"') || word.ends_with('\'')) word.remove_suffix(1);
    for (const std::string_view start : {"GRUB_CMDLINE_LINUX_DEFAULT=", "GRUB_CMDLINE_LINUX="})
      if (word.starts_with(start)) word.remove_prefix(start.size());
    while (word.starts_with('"') || word.starts_with('\'')) word.remove_prefix(1);
    const auto values = [&](std::string_view key, std::string_view value) {
      if (!word.starts_with(key)) return false;
      const std::string list = "," + std::string(word.substr(key.size())) + ",";
      return list.find("," + std::string(value) + ",") != std::string::npos;
    };
    off = off || values("amd_iommu=", "off") || values("intel_iommu=", "off") ||
          values("iommu=", "off");
    passthrough = passthrough || values("iommu=", "pt") || values("amd_iommu=", "pt") ||
                  word == "iommu.passthrough=1";
    on = on || values("intel_iommu=", "on") || values("amd_iommu=", "on") ||
         values("iommu=", "on") || values("iommu=", "nopt") || values("iommu=", "force") ||
         word == "iommu.passthrough=0";
  }
  if (off) return IommuMode::off;
  if (passthrough) return IommuMode::passthrough;
  return on ? std::optional(IommuMode::translate) : std::nullopt;
}

bool HostFactsReader::line(std::string_view text) {
  return processor(text) || kernel(text) || modules(text) || nvidia(text);
}

bool HostFactsReader::processor(std::string_view text) {
  Processor& processor = machine_.processor;
  if (const auto v = value_of(text, "Vendor ID")) processor.vendor = text::printable(*v, 20);
  else if (const auto name = value_of(text, "Model name"))
    processor.name = text::printable(*name, 80);
  else if (const auto family = value_of(text, "CPU family"))
    processor.family = text::whole_int(*family);
  else if (const auto model = value_of(text, "Model")) processor.model = text::whole_int(*model);
  else if (const auto sockets = value_of(text, "Socket(s)"))
    processor.packages = text::whole_int(*sockets);
  else if (const auto nodes = value_of(text, "NUMA node(s)"))
    processor.numa_nodes = text::whole_int(*nodes);
  else if (value_of(text, "Hypervisor vendor")) machine_.virtual_machine = true;
  else if (text.starts_with("available: ") && text.find(" nodes (") != std::string_view::npos)
    processor.numa_nodes = text::int_after(text, "available: ");
  else return false;
  if (machine_.formats.empty()) machine_.formats = {"lscpu"};
  const auto sane = [](std::optional<int>& count) {
    if (count && (*count < 1 || *count > 1024)) count.reset();
  };
  sane(processor.packages);
  sane(processor.numa_nodes);
  return true;
}

bool HostFactsReader::kernel(std::string_view text) {
  const std::string_view line = text::trim(text);
  if (asked_uname_) {
    asked_uname_ = false;
    if (std::string version = kernel_version(line); !version.empty()) {
      machine_.software.kernel = std::move(version);
      return true;
    }
  }
  if (line.ends_with("uname -r")) {
    asked_uname_ = true;
    return true;
  }
  if (line.starts_with("Linux ")) {
    const auto words = text::split_words(line);
    if (words.size() >= 3)
      machine_.software.kernel = kernel_version(words[1] == "version" ? words[2] : words[2]);
    return words.size() >= 3;
  }
  const bool command_line =
      line.starts_with("BOOT_IMAGE=") || line.starts_with("GRUB_CMDLINE_LINUX");
  const auto mode = line.starts_with('#') ? std::nullopt : iommu_of_command_line(line);
  if (mode && !machine_.software.iommu) machine_.software.iommu = mode;
  // A bare version with a suffix is what uname -r prints: "6.8.0-45-generic".
  if (!command_line && !mode && line.find(' ') == std::string_view::npos &&
      line.find('-') != std::string_view::npos && std::count(line.begin(), line.end(), '.') >= 2 &&
      line.find(':') == std::string_view::npos) {
    if (std::string version = kernel_version(line);
        !version.empty() && machine_.software.kernel.empty()) {
      machine_.software.kernel = std::move(version);
      return true;
    }
  }
  return command_line || mode.has_value();
}

bool HostFactsReader::modules(std::string_view text) {
  const auto words = text::split_words(text);
  if (words.size() >= 4 && words[0] == "Module" && words[1] == "Size" && words[2] == "Used") {
    lsmod_ = true;
    return true;
  }
  if (words.size() < 3 || !text::whole_int(words[1]) || !text::whole_int(words[2])) return false;
  if (words[0] == "nvidia_peermem" || words[0] == "nv_peer_mem")
    machine_.software.nvidia_peermem = true;
  return lsmod_ || words[0].starts_with("nv");
}

bool HostFactsReader::nvidia(std::string_view text) {
  Software& software = machine_.software;
  bool any = false;
  const auto version_after = [&](std::string_view key) -> std::string {
    const auto rest = text::after(text, key);
    if (!rest) return {};
    const auto end = rest->find_first_not_of("0123456789.");
    std::string version(rest->substr(0, end));
    while (version.ends_with('.')) version.pop_back();
    return version.size() <= 20 && !version.starts_with('.') ? version : std::string();
  };
  if (std::string cuda = version_after("CUDA Version:"); !cuda.empty()) {
    software.cuda = std::move(cuda);
    any = true;
  }
  if (std::string nccl = version_after("NCCL version "); !nccl.empty()) {
    software.nccl_version = std::move(nccl);
    any = true;
  }
  if (text.find("NVRM version:") != std::string_view::npos) {
    software.open_kernel_modules = text.find("Open Kernel Module") != std::string_view::npos;
    any = true;
  }
  std::string_view line = text::trim(text);
  if (line.starts_with("export ")) line = text::trim(line.substr(7));
  if (line.starts_with("NCCL_NET_GDR_LEVEL=")) {
    software.nccl_net_gdr_level = text::printable(text::trim(line.substr(19)), 20);
    any = true;
  }
  return any;
}

Machine HostFactsReader::take() {
  if (lsmod_ && !machine_.software.nvidia_peermem) machine_.software.nvidia_peermem = false;
  Machine machine = std::move(machine_);
  if (machine.formats.empty() && machine != Machine{}) machine.formats = {"facts of the host"};
  *this = HostFactsReader();
  return machine;
}

}  // namespace gdr::observed
