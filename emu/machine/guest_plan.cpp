#include "emu/machine/guest_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "emu/machine/addresses.hpp"
#include "emu/machine/pci_overlay.hpp"
#include "emu/machine/qemu_option.hpp"
#include "emu/process/shell.hpp"
#include "src/common/error.hpp"

namespace gdr::emu {
namespace {

using namespace literals;

constexpr Bytes base_memory = 768_MiB;
constexpr Bytes memory_a_node =
    128_MiB;  // a whole section: the kernel takes no less for a NUMA node
constexpr std::uint64_t bytes_a_page_structure = 64;
constexpr std::size_t max_numa_nodes = 64;
/// The second line saves time: it drops port services (hot plug, errors) that nothing here has,
/// checks of the kernel's own memory and ciphers, calibration, and waiting for grace periods.
constexpr const char* kernel_parameters =
    "console=ttyS0 quiet panic=-1 mitigations=off audit=0 apparmor=0 random.trust_cpu=on"
    " pcie_ports=compat rodata=off nokaslr cryptomgr.notests tsc=reliable lpj=4000000 "
    "no_timer_check rcupdate.rcu_expedited=1";

/// Adds "option value" pairs.
void add(std::vector<std::string>& arguments, const char* option, std::string value) {
  arguments.emplace_back(option);
  arguments.push_back(std::move(value));
}

/// What distinguishes a real machine from a virtual one: a bit of CPUID, which the kernel needs
/// only for its paravirtual clock, and the firmware's vendor name. KVM shows the machine's own
/// processor.
void add_identity(std::vector<std::string>& arguments, const Topology& topology, const Host& host,
                  bool kvm, const ModelLibrary& models) {
  const bool is_virtual = host.virtual_machine.value_or(false);
  const std::string identity = kvm ? std::string() : processor_identity(host, models);
  std::string cpu = kvm ? "host" : "max";
  if (!is_virtual) cpu += ",-hypervisor";
  if (!identity.empty()) cpu += "," + identity;
  add(arguments, "-cpu", std::move(cpu));
  if (!is_virtual)
    add(arguments, "-smbios",
        fmt::format("type=1,manufacturer=gdr,product={}", option_value(topology.name)));
}

/// One CPU per NUMA node. In QEMU all sockets have the same number of CPUs: surplus CPUs go to the
/// socket's last node.
void add_processors(std::vector<std::string>& arguments, const Host& host, Bytes gpu_memory) {
  std::size_t cores = 1;
  std::vector<std::vector<std::size_t>> nodes(host.sockets.size());
  for (std::size_t socket = 0; socket < host.sockets.size(); ++socket) {
    for (std::size_t node = 0; node < host.numa_nodes.size(); ++node)
      if (host.numa_nodes[node].socket == host.sockets[socket].name) nodes[socket].push_back(node);
    cores = std::max(cores, nodes[socket].size());
  }
  if (host.numa_nodes.size() > max_numa_nodes)
    throw InputError(fmt::format("{}: cannot be emulated: {} NUMA nodes; {} are enough", host.name,
                                 host.numa_nodes.size(), max_numa_nodes));
  add(arguments, "-smp",
      fmt::format("{},sockets={},cores={}", cores * host.sockets.size(), host.sockets.size(),
                  cores));
  std::vector<std::string> cpus(host.numa_nodes.size());
  for (std::size_t socket = 0; socket < host.sockets.size(); ++socket)
    for (std::size_t core = 0; core < cores; ++core) {
      const std::size_t node =
          nodes[socket].empty() ? 0 : nodes[socket][std::min(core, nodes[socket].size() - 1)];
      cpus[node] += fmt::format(",cpus={}", socket * cores + core);
    }
  // The page structures of the GPUs' memory are taken from the first node.
  const std::uint64_t pages = gpu_memory.count / 4096 * bytes_a_page_structure;
  const Bytes first{(base_memory.count + pages + memory_a_node.count - 1) / memory_a_node.count *
                    memory_a_node.count};
  add(arguments, "-m",
      fmt::format("{}M",
                  (first.count + (host.numa_nodes.size() - 1) * memory_a_node.count) >> 20U));
  for (std::size_t node = 0; node < host.numa_nodes.size(); ++node) {
    const std::uint64_t size = node == 0 ? first.count : memory_a_node.count;
    add(arguments, "-object",
        fmt::format("memory-backend-ram,id={}.memory,size={}", host.numa_nodes[node].name, size));
    add(arguments, "-numa",
        fmt::format("node,nodeid={},memdev={}.memory{}", node, host.numa_nodes[node].name,
                    cpus[node]));
  }
}

void add_channel(std::vector<std::string>& arguments, const std::string& name, int descriptor) {
  add(arguments, "-chardev", fmt::format("socket,id={},fd={}", name, descriptor));
  add(arguments, "-device", fmt::format("virtserialport,chardev={},name=gdr.{}", name, name));
}

void add_folder(std::vector<std::string>& arguments, const std::string& tag,
                const std::string& path, const std::string& more) {
  add(arguments, "-fsdev",
      fmt::format("local,id={},path={},security_model=none,multidevs=remap{}", tag,
                  option_value(path), more));
  add(arguments, "-device", fmt::format("virtio-9p-pci,fsdev={},mount_tag={}", tag, tag));
}

std::string variable(const std::string& name, const std::string& value) {
  return fmt::format("{}={}\n", name, shell_word(value));
}

/// A host's name as part of a variable's name.
std::string in_variable(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

/// The environment of COMMAND.
std::string environment(const Topology& topology, std::size_t index) {
  std::string text = "export " + variable("GDR_HOST", topology.hosts[index].name);
  text += "export " + variable("GDR_HOST_INDEX", std::to_string(index));
  std::vector<std::string> peers;
  for (std::size_t other = 0; other < topology.hosts.size(); ++other) {
    const auto nics = numbered_devices(topology.hosts[other], DeviceKind::nic);
    const std::string& name = topology.hosts[other].name;
    for (const Numbered& nic : nics) {
      const std::string address = ip_address(other, nic.number);
      const std::string prefix =
          other == index ? "GDR_NIC_" : fmt::format("GDR_PEER_{}_NIC_", in_variable(name));
      text += "export " + variable(fmt::format("{}{}", prefix, nic.number), address);
    }
    if (other != index) peers.push_back(name + "=" + management_address(other));
  }
  return text + "export " + variable("GDR_PEERS", fmt::format("{}", fmt::join(peers, " ")));
}

/// Lines for our modules; to the shell they are comments.
std::string module_settings(const Hardware& hardware, std::size_t index, const RunPlan& run,
                            const PcieTree& tree) {
  const Topology& topology = hardware.topology();
  const Host& host = topology.hosts[index];
  std::string text = gpu_settings(hardware, index, tree.places) + nic_settings(hardware, index) +
                     refused_pairs(topology, index, hardware.models());
  for (const Refusal& refusal : run.refusals)
    if (refusal.host.empty() || refusal.host == host.name)
      text += fmt::format("#refuse {} --refuse-registration\n", refusal.rule);
  return text + pci_overlay(hardware, index, tree);
}

std::string settings(const Topology& topology, std::size_t index, const RunPlan& run) {
  std::vector<std::string> nics;
  for (const Numbered& nic : numbered_devices(topology.hosts[index], DeviceKind::nic))
    nics.push_back(fmt::format("{}/{}/{}", nic.number, mac_address(index, nic.number),
                               ip_address(index, nic.number)));
  return variable("GUEST_KERNEL", run.kernel.release) +
         variable("GUEST_MODULES", run.kernel.modules) + variable("GUEST_FOLDER", run.work_folder) +
         variable("GUEST_TOOL", run.tool) +
         variable("GUEST_PEERMEM", has_peermem(topology.hosts[index]) ? "1" : "") +
         variable("GUEST_NICS", fmt::format("{}", fmt::join(nics, " "))) +
         variable("GUEST_MANAGEMENT",
                  management_mac_address(index) + "/" + management_address(index)) +
         environment(topology, index);
}

/// Each NIC is an open socket; QEMU sends each frame after its length.
void add_netdev(std::vector<std::string>& arguments, const std::string& id, int descriptor) {
  add(arguments, "-netdev",
      fmt::format("stream,id={},server=off,addr.type=fd,addr.str={}", id, descriptor));
}

}  // namespace

GuestPlan plan_guest(const Topology& topology, std::size_t index, const RunPlan& run,
                     const ModelLibrary& models) {
  const Host& host = topology.hosts[index];
  if (topology.hosts.size() > max_hosts)
    throw InputError(fmt::format("{}: has {} hosts; emulation joins {}", topology.name,
                                 topology.hosts.size(), max_hosts));
  const Graph graph(topology);
  const Hardware hardware(graph, models);
  const auto gpus = gpu_memory(hardware, index);
  const auto gpu_file = [&](const Device& gpu) {
    return fmt::format("{}/{}-{}.memory", run.gpu_files, host.name, gpu.name);
  };
  const PcieTree tree = pcie_tree(host, index, gpus, gpu_file);
  Bytes all_gpu_memory;
  for (const GpuMemory& gpu : gpus) all_gpu_memory = all_gpu_memory + gpu.size;

  GuestPlan plan;
  plan.host = host.name;
  plan.settings_file = fmt::format("{}/{}.settings", run.files, host.name);
  plan.console_file = fmt::format("{}/{}.console", run.files, host.name);
  plan.settings = settings(topology, index, run) + module_settings(hardware, index, run, tree);
  plan.note = cut_note(host, gpus);
  if (!gpus.empty()) plan.gpu_folder = run.gpu_files;

  std::vector<std::string>& arguments = plan.qemu;
  arguments = {"qemu-system-x86_64", "-nodefaults", "-no-user-config",
               "-no-reboot",         "-display",    "none"};
  add(arguments, "-name", option_value(host.name));
  add(arguments, "-machine", "q35,vmport=off");
  // The multi-threaded TCG crashed about once in sixty boots.
  add(arguments, "-accel", run.kvm ? "kvm" : "tcg,thread=single");
  add_identity(arguments, topology, host, run.kvm, models);
  add_processors(arguments, host, all_gpu_memory);
  add(arguments, "-kernel", run.kernel.image);
  add(arguments, "-initrd", run.kernel.initramfs);
  std::string kernel_line = kernel_parameters;
  if (const std::string iommu = iommu_parameters(host, models); !iommu.empty())
    kernel_line += " " + iommu;
  add(arguments, "-append", std::move(kernel_line));
  add(arguments, "-chardev",
      fmt::format("file,id=console,path={}", option_value(plan.console_file)));
  add(arguments, "-serial", "chardev:console");
  add(arguments, "-fw_cfg",
      fmt::format("name=opt/gdr/guest,file={}", option_value(plan.settings_file)));
  add(arguments, "-device", "virtio-serial-pci");
  add_channel(arguments, "control", control_descriptor);
  add_channel(arguments, "output", output_descriptor);
  add_channel(arguments, "errors", errors_descriptor);
  add_folder(arguments, "root", "/", ",readonly=on");
  if (!run.work_folder.empty()) add_folder(arguments, "folder", run.work_folder, "");
  // Put it on the bus that has no device of the topology.
  add_netdev(arguments, "mgmt0.net", management_descriptor);
  add(arguments, "-device",
      fmt::format("virtio-net-pci,netdev=mgmt0.net,mac={},romfile=",
                  management_mac_address(index)));
  for (const Numbered& nic : numbered_devices(host, DeviceKind::nic)) {
    add_netdev(arguments, host.devices[nic.device].name,
               first_nic_descriptor + static_cast<int>(plan.nics.size()));
    plan.nics.push_back(host.devices[nic.device].name);
  }
  arguments.insert(arguments.end(), tree.arguments.begin(), tree.arguments.end());
  return plan;
}

}  // namespace gdr::emu
