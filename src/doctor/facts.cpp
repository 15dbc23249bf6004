#include "src/doctor/facts.hpp"

#include <algorithm>

#include "src/common/terminal_text.hpp"
#include "src/doctor/text_facts.hpp"
#include "src/import/capture_json.hpp"
#include "src/import/host_facts.hpp"

namespace gdr::doctor {
namespace {

void read_lines(std::string_view text, TextFacts& reader, observed::HostFactsReader& host) {
  for (const std::string_view raw : text::lines(text)) {
    const std::string line = text::without_escapes(raw);
    (void)host.line(line);
    reader.line(line);
  }
}

/// True for a GID in use: an empty slot is all zeros. The type file of an entry that belongs to
/// another network namespace cannot be read.
void read_ports(const observed::CapturedFiles& files, Facts& facts) {
  for (const std::string& device : files.list("sys/class/infiniband")) {
    facts.rdma_devices.insert(device);
    const std::string base = "sys/class/infiniband/" + device;
    for (const std::string& network : interfaces_of(files, base + "/device"))
      facts.networks[device] = network;
    for (const std::string& port : files.list(base + "/ports")) {
      const std::string at = base + "/ports/" + port;
      if (const std::string layer = files.line(at + "/link_layer"); !layer.empty())
        facts.layers[device] = layer;
      for (const std::string& index : files.list(at + "/gids")) {
        const std::string address = files.line(at + "/gids/" + index);
        if (address.empty() || address == "0000:0000:0000:0000:0000:0000:0000:0000") continue;
        const std::string type = files.line(at + "/gid_attrs/types/" + index);
        const std::string word = type == "RoCE v2"      ? "v2"
                                 : type == "IB/RoCE v1" ? "v1"
                                 : type == "IB"         ? "IB"
                                                        : "";
        facts.gids.push_back({device, text::whole_int(port).value_or(1),
                              text::whole_int(index).value_or(0), word,
                              files.line(at + "/gid_attrs/ndevs/" + index), address});
        facts.gids_listed = true;
      }
    }
  }
  facts.networks_listed = facts.networks_listed || !facts.networks.empty();
}

void read_files(const observed::CapturedFiles& files, Facts& facts) {
  read_ports(files, facts);
  if (const std::string* modules = files.file("proc/modules")) {
    facts.modules.emplace();
    for (const std::string_view line : text::lines(*modules))
      if (const auto words = text::split_words(line); !words.empty())
        facts.modules->insert(std::string(words.front()));
  }
  const bool peers = files.file("sys/kernel/mm/memory_peers/nv_mem/version") != nullptr ||
                     files.file("sys/kernel/mm/memory_peers/nv_mem_nc/version") != nullptr;
  if (peers || !files.files().empty()) facts.memory_peers = peers;
}

void read_capture_facts(const observed::Capture& capture, Facts& facts, TextFacts& reader,
                        observed::HostFactsReader& host) {
  facts.root = capture.root;
  facts.missing = capture.missing;
  read_files(capture.files, facts);
  for (const char* file : {"proc/self/limits", "proc/mounts", "proc/cmdline", "proc/version",
                           "proc/driver/nvidia/version"})
    if (const std::string* content = capture.files.file(file)) read_lines(*content, reader, host);
  for (const auto& [command, output] : capture.commands) {
    if (command == "modinfo rdma_rxe")
      facts.rxe_module = output.find("filename") != std::string::npos;
    read_lines(output, reader, host);
  }
}

}  // namespace

Facts read_facts(const std::vector<NamedText>& inputs) {
  Facts facts;
  TextFacts reader(facts);
  observed::HostFactsReader host;
  for (const NamedText& input : inputs) {
    const InputKind kind = recognise(input);
    if (kind == InputKind::capture)
      read_capture_facts(observed::read_capture(json::parse(input.text, input.name), input.name),
                         facts, reader, host);
    if (kind == InputKind::archive) {
      const auto files = observed::CapturedFiles::of_archive(input.text, input.name);
      read_files(files, facts);
      if (const std::string* command_line = files.file("proc/cmdline"))
        read_lines(*command_line, reader, host);
    }
    if (kind == InputKind::text) read_lines(input.text, reader, host);
  }
  const Software software = host.take().software;
  facts.kernel = software.kernel;
  facts.cuda = software.cuda;
  facts.nccl = software.nccl_version;
  facts.open_modules = software.open_kernel_modules;
  if (!facts.iommu) facts.iommu = software.iommu;
  if (facts.modules) facts.modules_seen.insert(facts.modules->begin(), facts.modules->end());
  return facts;
}

bool says(const Facts& facts, std::string_view a, std::string_view b) {
  return std::any_of(facts.messages.begin(), facts.messages.end(), [&](const std::string& line) {
    return line.find(a) != std::string::npos && line.find(b) != std::string::npos;
  });
}

}  // namespace gdr::doctor
