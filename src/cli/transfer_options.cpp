#include "src/cli/transfer_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "src/cli/input.hpp"
#include "src/common/error.hpp"
#include "src/report/output.hpp"

namespace gdr::cli {

void add_transfer_options(CLI::App& command, TransferOptions& options,
                          const std::vector<std::string>& formats, bool ends_required) {
  command.add_option("topology", options.topology, "topology file")->required();
  command
      .add_option("--set", options.settings,
                  "KEY=VALUE: what if, as in iommu=translate or h0/nic0.link=gen4x8")
      ->allow_extra_args(false);
  command
      .add_option("--from", options.from,
                  "HOST/DEVICE whose memory the bytes leave, or HOST/NUMA-NODE for host memory")
      ->required(ends_required);
  command.add_option("--to", options.to, "the same for the memory that they reach")
      ->required(ends_required);
  command
      .add_option("--path", options.path,
                  "all, or a list of gdr, staged, tcp, rdma (host memory), p2p (PCIe), nvlink, "
                  "copy (GPU and host memory), dma (NIC or drive and host memory), gds (drive and "
                  "GPU), load-store (GPU threads)")
      ->capture_default_str();
  command
      .add_option("--operation", options.operation,
                  "write, read (the receiving side fetches) or send (two-sided, as MPI)")
      ->capture_default_str();
  command.add_option("--size", options.sizes,
                     "sizes of a message, 1B to 16GiB, separated by commas");
  command.add_option("--via", options.via,
                     "NICs to use, as in h0/nic1,h1/nic1 (default: the nearest)");
  command
      .add_option("--memory", options.memory, "gpu, or host: the host memory near the two devices")
      ->check(CLI::IsMember({"gpu", "host"}))
      ->capture_default_str();
  command
      .add_option("--initiator", options.initiator,
                  "who posts (gdr): cpu, gpu (IBGDA, GPUNetIO) or proxy (GPU asks a CPU thread)")
      ->check(CLI::IsMember({"cpu", "gpu", "proxy"}))
      ->capture_default_str();
  command
      .add_option("--work-request", options.work_request,
                  "push (with the doorbell: BlueFlame) or fetch (the NIC reads it); default: as "
                  "the NIC can")
      ->check(CLI::IsMember({"push", "fetch"}));
  command.add_flag("--inline", options.inlined,
                   "the CPU puts the payload into the work request (path rdma, small)");
  command.add_flag("--pageable", options.pageable, "host memory is not page-locked (path copy)");
  command.add_option(
      "--window", options.window,
      "spread the transfers over so much memory: cold caches, IOTLB misses (default: warm)");
  command.add_option("--format", options.format, "how to print")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
}

Topology load(const TransferOptions& options, const ModelLibrary& models) {
  return load_input(options.topology, parse_settings(options.settings), &models);
}

std::vector<Bytes> parse_sizes(const std::string& text) {
  std::vector<Bytes> sizes;
  for (const std::string& part : split(text)) {
    sizes.push_back(parse_bytes(part));
    check_size(sizes.back());
  }
  return sizes;
}

namespace {

/// Runs `parse`; errors name the option.
template <typename Parse>
auto of_option(const char* option, const std::string& text, Parse parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} {}: {}", option, text, error.what()));
  }
}

}  // namespace

std::vector<Transfer> transfers_of(const Graph& graph, const TransferOptions& options) {
  const Topology& topology = graph.topology();
  Transfer base;
  const End from =
      of_option("--from", options.from, [&] { return find_end(topology, options.from); });
  const End to = of_option("--to", options.to, [&] { return find_end(topology, options.to); });
  set_ends(topology, from, to, base);
  base.operation = of_option("--operation", options.operation,
                             [&] { return parse_operation(options.operation); });
  base.memory = options.memory == "host" ? MemoryKind::host : MemoryKind::gpu;
  base.initiator = parse_initiator(options.initiator);
  base.inlined = options.inlined;
  base.pageable = options.pageable;
  if (!options.work_request.empty()) base.push_request = options.work_request == "push";
  if (!options.window.empty())
    base.window =
        of_option("--window", options.window, [&] { return parse_bytes(options.window); });
  if (base.window && base.window->count == 0)
    throw InputError(
        "--window 0: nothing is in it; give the size of the memory that transfers are spread over");
  if (!options.via.empty())
    for (const std::string& nic : split(options.via))
      base.via.push_back(
          of_option("--via", options.via, [&] { return find_device(topology, nic); }));
  std::vector<PathKind> paths;
  if (options.path == "all") {
    paths = base.initiator == Initiator::cpu ? usual_paths(graph, base)
                                             : std::vector<PathKind>{PathKind::gdr};
    if (paths.empty())
      throw InputError(fmt::format("no path leads from {} to {}", options.from, options.to));
  } else {
    for (const std::string& name : split(options.path))
      paths.push_back(of_option("--path", options.path, [&] { return parse_path(name); }));
  }
  std::vector<Transfer> transfers;
  const std::vector<Bytes> sizes =
      of_option("--size", options.sizes, [&] { return parse_sizes(options.sizes); });
  for (const PathKind path : paths)
    for (const Bytes size : sizes) {
      Transfer transfer = base;
      transfer.path = path;
      transfer.size = size;
      transfers.push_back(transfer);
    }
  return transfers;
}

}  // namespace gdr::cli
