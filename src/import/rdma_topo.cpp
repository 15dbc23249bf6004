#include "src/import/rdma_topo.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>

#include "src/common/error.hpp"
#include "src/common/terminal_text.hpp"
#include "src/import/config_space.hpp"

namespace gdr::observed {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const std::string* text_member(const json::Value& object, std::string_view name) {
  const json::Value* member = object.find(name);
  return member != nullptr ? member->as<std::string>() : nullptr;
}

/// A number, possibly written as text or at the end of a path ("../../kernel/iommu_groups/12").
std::optional<int> number_member(const json::Value& object, std::string_view name) {
  const json::Value* member = object.find(name);
  if (member == nullptr) return std::nullopt;
  if (const auto* number = member->as<std::int64_t>())
    return *number >= -1 && *number < 1'000'000 ? std::optional(static_cast<int>(*number))
                                                : std::nullopt;
  const auto* words = member->as<std::string>();
  return words != nullptr
             ? text::whole_int(text::trim(std::string_view(*words).substr(words->rfind('/') + 1)))
             : std::nullopt;
}

/// "pci:v000015B3d00001021sv...sd...bc02sc07i00"
void read_modalias(std::string_view alias, Function& function) {
  if (!alias.starts_with("pci:v") || alias.size() < 53) return;
  const auto part = [&](std::string_view key, std::size_t digits) -> std::optional<unsigned> {
    const auto at = alias.find(key, 4);
    if (at == std::string_view::npos || at + key.size() + digits > alias.size())
      return std::nullopt;
    const auto value = text::whole_int(alias.substr(at + key.size(), digits), 16);
    return value && *value >= 0 ? std::optional(static_cast<unsigned>(*value)) : std::nullopt;
  };
  const auto vendor = part("v0000", 4);
  const auto device = part("d0000", 4);
  if (vendor && device) function.pci_id = fmt::format("{:04x}:{:04x}", *vendor, *device);
  const auto base = part("bc", 2);
  const auto sub = part("sc", 2);
  if (base && sub) function.pci_class = *base << 16U | *sub << 8U | part("i", 2).value_or(0);
}

/// {"infiniband": ["mlx5_0"]}, {"infiniband": "mlx5_0"} and {"infiniband": {"mlx5_0": ...}} all
/// name the same device.
std::vector<std::string> names_in(const json::Value& value) {
  std::vector<std::string> names;
  if (const auto* one = value.as<std::string>()) names.push_back(*one);
  if (const auto* list = value.as<json::Array>())
    for (const json::Value& item : *list)
      if (const auto* name = item.as<std::string>()) names.push_back(*name);
  if (const auto* object = value.as<json::Object>())
    for (const auto& [name, inside] : *object) names.push_back(name);
  for (std::string& name : names) name = text::printable(name, 40);
  return names;
}

struct Entry {
  Function function;
  std::string above;
};

Entry read_entry(const json::Value& object, const std::string& place) {
  Entry entry;
  const std::string* path = text_member(object, "realpath");
  const std::string* alias = text_member(object, "modalias");
  if (path == nullptr || alias == nullptr)
    throw InputError(
        fmt::format("{}: an entry of rdma_topo has \"realpath\" and \"modalias\"", place));
  Function& function = entry.function;
  for (std::string_view rest = *path; !rest.empty();) {
    const auto end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.starts_with("pci") && part.find(':') != std::string_view::npos)
      function.root_bus = std::string(part.substr(3, 12));
    else if (std::string address = full_address(part); !address.empty()) {
      entry.above = function.address;
      function.address = std::move(address);
    }
  }
  read_modalias(*alias, function);
  if (const std::string* config = text_member(object, "config"))
    read_config_space(inflate(decode_base64(*config, place), 4096, place), function);
  if (const auto node = number_member(object, "numa_node"))
    function.numa_node = *node >= -1 && *node < 4096 ? node : std::nullopt;
  function.iommu_group = number_member(object, "iommu_group");
  if (const json::Value* subsystems = object.find("subsystems")) {
    if (const json::Value* rdma = subsystems->find("infiniband"))
      if (const auto names = names_in(*rdma); !names.empty()) function.rdma_device = names.front();
    if (const json::Value* net = subsystems->find("net")) function.networks = names_in(*net);
  }
  return entry;
}

}  // namespace

std::vector<std::uint8_t> decode_base64(std::string_view text, const std::string& place) {
  std::vector<std::uint8_t> bytes;
  unsigned held = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=' || c == '\n' || c == '\r') continue;
    const auto value = alphabet.find(c);
    if (value == std::string_view::npos) throw InputError(fmt::format("{}: not base64", place));
    held = held << 6U | static_cast<unsigned>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>(held >> static_cast<unsigned>(bits) & 0xffU));
  }
  return bytes;
}

std::string encode_base64(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t n) { return i + n < bytes.size() ? bytes[i + n] : 0U; };
    const unsigned three = at(0) << 16U | at(1) << 8U | at(2);
    for (std::size_t n = 0; n < 4; ++n)
      text += i + n > bytes.size() ? '=' : alphabet[three >> (18 - 6 * n) & 0x3fU];
  }
  return text;
}

std::vector<std::uint8_t> inflate(const std::vector<std::uint8_t>& packed, std::size_t most,
                                  const std::string& place) {
  std::vector<std::uint8_t> plain(most);
  uLongf size = plain.size();
  const int status = uncompress(plain.data(), &size, packed.data(), packed.size());
  if (status == Z_BUF_ERROR)
    throw InputError(fmt::format("{}: unpacks to more than {} bytes", place, most));
  if (status != Z_OK) throw InputError(fmt::format("{}: not a zlib stream", place));
  plain.resize(size);
  return plain;
}

std::vector<std::uint8_t> deflate(const std::vector<std::uint8_t>& plain) {
  std::vector<std::uint8_t> packed(compressBound(plain.size()));
  uLongf size = packed.size();
  compress2(packed.data(), &size, plain.data(), plain.size(), Z_BEST_COMPRESSION);
  packed.resize(size);
  return packed;
}

Machine read_rdma_topo(const json::Value& document, const std::string& name) {
  const auto* list = document.as<json::Array>();
  if (list == nullptr || list->empty())
    throw InputError(fmt::format("{}: a dump of rdma_topo is a list of PCI functions", name));
  Machine machine;
  std::map<std::string, std::size_t> index;
  std::vector<std::string> above;
  for (std::size_t i = 0; i < list->size(); ++i) {
    Entry entry = read_entry((*list)[i], fmt::format("{}: at /{}", name, i));
    if (entry.function.address.empty()) continue;
    if (!index.emplace(entry.function.address, machine.functions.size()).second) continue;
    machine.functions.push_back(std::move(entry.function));
    above.push_back(std::move(entry.above));
  }
  for (std::size_t i = 0; i < above.size(); ++i)
    if (const auto found = index.find(above[i]); found != index.end())
      machine.functions[i].above = found->second;
  machine.formats = {"rdma_topo"};
  return machine;
}

}  // namespace gdr::observed
