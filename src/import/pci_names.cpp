#include "src/import/pci_names.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gdr::observed {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

/// Starts of vendor names in the PCI ID database (https://pci-ids.ucw.cz), including its older
/// versions.
constexpr std::array<Pair, 21> vendors{{{"NVIDIA", "10de"},
                                        {"Mellanox", "15b3"},
                                        {"Advanced Micro Devices, Inc. [AMD/ATI]", "1002"},
                                        {"Advanced Micro Devices", "1022"},
                                        {"Intel", "8086"},
                                        {"PLX Technology", "10b5"},
                                        {"Broadcom / LSI", "1000"},
                                        {"LSI Logic", "1000"},
                                        {"Broadcom", "14e4"},
                                        {"PMC-Sierra", "11f8"},
                                        {"Microsemi", "11f8"},
                                        {"Amazon", "1d0f"},
                                        {"Red Hat", "1b36"},
                                        {"Texas Instruments", "104c"},
                                        {"Samsung", "144d"},
                                        {"Huawei", "19e5"},
                                        {"ASPEED", "1a03"},
                                        {"Matrox", "102b"},
                                        {"SK hynix", "1c5c"},
                                        {"Microsoft", "1414"},
                                        {"IBM", "1014"}}};

/// Texts that only one product has in the PCI ID database. A longer text comes before any that it
/// contains.
constexpr std::array<Pair, 57> products{{{"A100 PCIe 40GB", "10de:20f1"},
                                         {"A100 PCIe 80GB", "10de:20b5"},
                                         {"A100 SXM4 40GB", "10de:20b0"},
                                         {"A100 SXM4 80GB", "10de:20b2"},
                                         {"[A100X]", "10de:20b8"},
                                         {"[A10G]", "10de:2237"},
                                         {"[A40]", "10de:2235"},
                                         {"[B200]", "10de:2901"},
                                         {"GH200", "10de:2342"},
                                         {"H100 PCIe", "10de:2331"},
                                         {"H100 SXM5 80GB", "10de:2330"},
                                         {"H200 NVL", "10de:233b"},
                                         {"H200 SXM", "10de:2335"},
                                         {"Tesla K40m", "10de:1023"},
                                         {"Tesla K40c", "10de:1024"},
                                         {"[L40S]", "10de:26b9"},
                                         {"[L40]", "10de:26b5"},
                                         {"Instinct MI100", "1002:738c"},
                                         {"Instinct MI210", "1002:740f"},
                                         {"Instinct MI250X/MI250", "1002:740c"},
                                         {"Instinct MI250X", "1002:7408"},
                                         {"Instinct MI300X", "1002:74a1"},
                                         {"Instinct MI50", "1002:66a1"},
                                         {"Tesla P100 PCIe 16GB", "10de:15f8"},
                                         {"Tesla P100 SXM2", "10de:15f9"},
                                         {"Tesla P40", "10de:1b38"},
                                         {"GeForce RTX 4090]", "10de:2684"},
                                         {"GeForce RTX 5090]", "10de:2b85"},
                                         {"GeForce RTX 3090]", "10de:2204"},
                                         {"RTX 6000 Ada Generation", "10de:26b1"},
                                         {"RTX A6000", "10de:2230"},
                                         {"RTX PRO 6000 Blackwell", "10de:2bb1"},
                                         {"Tesla T4]", "10de:1eb8"},
                                         {"Tesla V100 PCIe 16GB", "10de:1db4"},
                                         {"Tesla V100 PCIe 32GB", "10de:1db6"},
                                         {"Tesla V100S PCIe 32GB", "10de:1df6"},
                                         {"Tesla V100 SXM2 16GB", "10de:1db1"},
                                         {"Tesla V100 SXM2 32GB", "10de:1db5"},
                                         {"Tesla V100 SXM3 32GB", "10de:1db8"},
                                         {"BlueField-2 integrated ConnectX", "15b3:a2d6"},
                                         {"BlueField-3 integrated ConnectX", "15b3:a2dc"},
                                         {"[Connect-IB]", "15b3:1011"},
                                         {"[ConnectX-3 Pro]", "15b3:1007"},
                                         {"[ConnectX-4]", "15b3:1013"},
                                         {"[ConnectX-5 Ex]", "15b3:1019"},
                                         {"[ConnectX-5]", "15b3:1017"},
                                         {"[ConnectX-6 Dx]", "15b3:101d"},
                                         {"[ConnectX-6]", "15b3:101b"},
                                         {"[ConnectX-7]", "15b3:1021"},
                                         {"[ConnectX-8]", "15b3:1023"},
                                         {"PEX 8747", "10b5:8747"},
                                         {"PEX 8796", "10b5:8796"},
                                         {"PEX880xx", "1000:c010"},
                                         {"PEX890xx", "1000:c030"},
                                         {"PM173X", "144d:a824"},
                                         {"PM174X", "144d:a826"},
                                         {"SM981/PM981/PM983", "144d:a808"}}};

constexpr std::array<std::pair<std::string_view, unsigned>, 26> classes{
    {{"3D controller", 0x030200},
     {"VGA compatible controller", 0x030000},
     {"Display controller", 0x038000},
     {"Processing accelerators", 0x120000},
     {"Ethernet controller", 0x020000},
     {"Infiniband controller", 0x020700},
     {"InfiniBand controller", 0x020700},
     {"Fabric controller", 0x020800},
     {"Network controller", 0x028000},
     {"Non-Volatile memory controller", 0x010800},
     {"PCI bridge", 0x060400},
     {"Host bridge", 0x060000},
     {"ISA bridge", 0x060100},
     {"Bridge", 0x068000},
     {"SATA controller", 0x010600},
     {"RAID bus controller", 0x010400},
     {"SCSI storage controller", 0x010000},
     {"Mass storage controller", 0x018000},
     {"Serial Attached SCSI controller", 0x010700},
     {"USB controller", 0x0c0300},
     {"Audio device", 0x040300},
     {"System peripheral", 0x088000},
     {"IOMMU", 0x080600},
     {"Communication controller", 0x078000},
     {"Co-processor", 0x0b4000},
     {"DMA controller", 0x080100}}};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <std::size_t size>
bool has_any(std::string_view text, const std::array<std::string_view, size>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return has(text, part); });
}

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::optional<unsigned> class_of_name(std::string_view name) {
  for (const auto& [words, number] : classes)
    if (words == name) return number;
  return std::nullopt;
}

std::string vendor_of_name(std::string_view text) {
  for (const auto& [words, id] : vendors)
    if (text.starts_with(words)) return std::string(id);
  return {};
}

std::string id_of_name(std::string_view text) {
  const std::string vendor = vendor_of_name(text);
  if (const auto at = text.find("Device "); !vendor.empty() && at != std::string_view::npos) {
    const std::string_view digits = text.substr(at + 7, 4);
    const bool alone = at + 11 >= text.size() || text[at + 11] == ' ';
    if (digits.size() == 4 && alone && std::all_of(digits.begin(), digits.end(), is_hex_digit))
      return vendor + ":" + std::string(digits);
  }
  static constexpr std::array<std::string_view, 5> other_functions{
      "Audio", "Virtual Function", "PCIe Bridge", "Flash Recovery", "SoC Management"};
  if (has_any(text, other_functions)) return {};
  for (const auto& [words, id] : products)
    if (has(text, words) && (vendor.empty() || id.starts_with(vendor))) return std::string(id);
  return {};
}

std::optional<DeviceKind> kind_of_name(std::string_view text) {
  static constexpr std::array<std::string_view, 8> no_device{
      "Audio", "USB", "UCSI", "SoC Management", "DMA", "Root Complex", "PCIe Bridge", "SATA"};
  if (has_any(text, no_device)) return DeviceKind::other;
  if (has(text, "NVSwitch")) return DeviceKind::nvswitch;
  if (has(text, "NVMe") && !has(text, "RAID")) return DeviceKind::nvme;
  if (text.starts_with("NVIDIA")) return DeviceKind::gpu;
  static constexpr std::array<std::string_view, 8> accelerators{
      "Instinct", "Radeon", "Vega 10", "Vega 20", "Arcturus", "Aldebaran", "Aqua Vanjaram", "Navi"};
  if (has(text, "AMD") && has_any(text, accelerators)) return DeviceKind::gpu;
  static constexpr std::array<std::string_view, 9> nics{
      "Mellanox",           "Ethernet", "InfiniBand",     "Infiniband", "NetXtreme",
      "Network Connection", "network",  "Fabric Adapter", "Omni-Path"};
  if (has_any(text, nics)) return DeviceKind::nic;
  return std::nullopt;
}

bool is_virtual_name(std::string_view text) {
  static constexpr std::array<std::string_view, 9> words{
      "QEMU",      "Virtio",     "virtio", "VMware", "Hyper-V", "Device 1234:1111",
      "XenSource", "VirtualBox", "Bochs"};
  return has_any(text, words) || (text.starts_with("Red Hat") && !text.empty());
}

bool is_plain_ethernet(std::string_view pci_id, std::string_view text) {
  const std::string_view vendor = pci_id.size() == 9 ? pci_id.substr(0, 4) : std::string_view();
  const std::string vendor_id = vendor.empty() ? vendor_of_name(text) : std::string(vendor);
  // Nearly all NICs of these vendors support RDMA: Mellanox, Amazon's EFA, Chelsio, Pensando,
  // QLogic, Marvell, Huawei, ZTE, Cornelis.
  static constexpr std::array<std::string_view, 4> rdma{"15b3", "1425", "1dd8", "1077"};
  if (std::find(rdma.begin(), rdma.end(), vendor_id) != rdma.end()) return false;
  if (vendor_id == "1d0f") return pci_id.substr(0, 7) != "1d0f:ef" && !has(text, "EFA");
  if (vendor_id == "8086") {
    // E810, E822, E823, E825 and E830 (irdma), X722 (i40iw), Omni-Path.
    static constexpr std::array<std::string_view, 6> words{"E810", "E822", "E823",
                                                           "E830", "X722", "Omni-Path"};
    static constexpr std::array<std::string_view, 5> ids{"8086:159", "8086:37d", "8086:24f",
                                                         "8086:188", "8086:124"};
    return !has_any(text, words) && std::none_of(ids.begin(), ids.end(), [&](std::string_view id) {
      return pci_id.starts_with(id);
    });
  }
  if (vendor_id == "14e4") {
    // NetXtreme-E (BCM574xx, 575xx, 576xx) supports RoCE; the gigabit NetXtreme and NetXtreme II do
    // not.
    return !has(text, "NetXtreme-E") && !has(text, "Thor") && !pci_id.starts_with("14e4:16d") &&
           !pci_id.starts_with("14e4:17") && !pci_id.starts_with("14e4:16f") &&
           !pci_id.starts_with("14e4:18");
  }
  static constexpr std::array<std::string_view, 6> plain{"10ec", "1d6a", "1af4",
                                                         "1b36", "10de", "177d"};
  return std::find(plain.begin(), plain.end(), vendor_id) != plain.end();
}

}  // namespace gdr::observed
