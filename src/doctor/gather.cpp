#include "src/doctor/gather.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "src/common/terminal_text.hpp"

namespace gdr::doctor {
namespace {

/// The output of a command, at most 4 MiB; empty when it is missing or fails. Callers pass only
/// fixed command lines.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>/dev/null").c_str(), "r"),
                                                   &pclose);
  std::string text;
  std::array<char, 4096> block{};
  for (std::size_t count = 0; pipe && text.size() < (4U << 20U) &&
                              (count = std::fread(block.data(), 1, block.size(), pipe.get())) > 0;)
    text.append(block.data(), count);
  return text;
}

/// True if a program is on the PATH. Most are not, and starting a shell for each takes time.
bool is_there(std::string_view program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (access(fmt::format("{}/{}", rest.substr(0, end), program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             std::string::npos &&
         name.front() != '-';
}

void commands(observed::Capture& capture) {
  const auto run = [&](const std::string& command) {
    if (!is_there(command.substr(0, command.find(' ')))) return;
    if (std::string text = output_of("timeout 20 " + command); !text.empty())
      capture.commands[command] = std::move(text);
  };
  for (const char* command :
       {"nvidia-smi topo -m", "nvidia-smi -L", "nvidia-smi", "rdma link", "rdma system",
        "show_gids", "ibdev2netdev", "ofed_info -s", "modinfo rdma_rxe", "lsmod", "dmesg"})
    run(command);
  // Interface names come from the machine: only plain ones may enter a command line.
  for (const std::string& device : capture.files.list("sys/class/infiniband"))
    for (const std::string& network :
         interfaces_of(capture.files, "sys/class/infiniband/" + device + "/device"))
      if (is_plain_name(network))
        for (const char* command : {"mlnx_qos -i ", "dcb pfc show dev ", "ethtool -S "})
          run(command + network);
  // The list of processes on the GPUs is private.
  if (const auto smi = capture.commands.find("nvidia-smi"); smi != capture.commands.end())
    smi->second.resize(std::min(smi->second.find("Processes:"), smi->second.size()));
  if (const auto dmesg = capture.commands.find("dmesg"); dmesg != capture.commands.end()) {
    // Keep only what the rules search for: the rest of the kernel's log says too much about a
    // machine.
    std::string kept;
    for (const std::string_view line : text::lines(dmesg->second))
      for (const std::string_view word :
           {"ib_register_peer_memory_client", "IO_PAGE_FAULT", "DMAR", "AMD-Vi", "nvidia_peermem",
            "rdma_rxe", "iommu: Default domain"})
        if (line.find(word) != std::string_view::npos) {
          kept.append(line).append("\n");
          break;
        }
    dmesg->second = kept;
  }
}

/// The NCCL settings that the rules search for, from NCCL's own sources, in rising order of
/// precedence. Other settings may name paths and users.
void settings(observed::Capture& capture) {
  static constexpr std::array<std::string_view, 3> names{
      "NCCL_IB_GID_INDEX=", "NCCL_IB_TIMEOUT=", "NCCL_NET_GDR_LEVEL="};
  std::string all;
  const char* home = std::getenv("HOME");
  for (const std::string& path :
       {std::string("/etc/nccl.conf"), std::string(home != nullptr ? home : "") + "/.nccl.conf"}) {
    std::ifstream file(path);
    for (std::string line; file && std::getline(file, line);) all += line + "\n";
  }
  for (char** variable = environ; *variable != nullptr; ++variable)
    all.append(*variable).append("\n");
  std::string kept;
  for (const std::string_view line : text::lines(all))
    if (std::any_of(names.begin(), names.end(),
                    [&](std::string_view name) { return line.starts_with(name); }))
      kept.append(line.substr(0, line.find_first_of(" \t#"))).append("\n");
  if (!kept.empty()) capture.commands["settings of NCCL"] = kept;
}

}  // namespace

observed::Capture gather(const std::string& root, bool anonymous) {
  observed::Capture capture;
  capture.root = geteuid() == 0;
  capture.files = observed::CapturedFiles::of_folder(root);
  if (root == "/") {
    commands(capture);
    settings(capture);
  }
  bool hidden = false;
  for (const auto& [path, content] : capture.files.files())
    hidden = hidden || (path.ends_with("/config") && content.size() <= 64);
  if (hidden)
    capture.missing["ACS, ATS, payload and read request sizes"] =
        "configuration space beyond 64 bytes needs root";
  if (root == "/" && !capture.root && !capture.commands.contains("dmesg"))
    capture.missing["dmesg"] = "needs root here";
  for (const char* command : {"nvidia-smi", "rdma link"})
    if (root == "/" && !capture.commands.contains(command))
      capture.missing[command] = "not installed, or the command failed";
  if (anonymous) {
    std::array<char, 256> name{};
    if (root == "/") (void)gethostname(name.data(), name.size() - 1);
    std::string host = name.data();
    if (host.empty()) std::ifstream(root + "/etc/hostname") >> host;
    make_anonymous(capture, host);
  }
  return capture;
}

}  // namespace gdr::doctor
