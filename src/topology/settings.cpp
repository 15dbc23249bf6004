#include "src/topology/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "src/common/error.hpp"

namespace gdr {
namespace {

constexpr std::array<std::string_view, 8> software_fields{
    "kernel", "iommu",        "iommu_page_size",   "nvidia_peermem", "open_kernel_modules",
    "cuda",   "nccl_version", "nccl_net_gdr_level"};
constexpr std::array<std::string_view, 2> host_fields{"virtual_machine", "sockets_known"};
constexpr std::array<std::string_view, 6> port_fields{
    "link", "link_capability", "acs", "max_payload", "max_read_request", "relaxed_ordering"};
constexpr std::array<std::string_view, 3> fabric_fields{"model", "mtu", "switches"};
constexpr std::array<std::string_view, 2> staging_fields{"chunk", "depth"};

template <typename Fields>
bool contains(const Fields& fields, std::string_view name) {
  return std::find(fields.begin(), fields.end(), name) != fields.end();
}

/// Converts command-line text to the JSON value that the field takes.
json::Value value_of(std::string_view field, const std::string& text) {
  if (field == "acs") {
    // "on" means the bits that a kernel with an IOMMU sets where the port supports them: source
    // validation, both redirects, upstream forwarding.
    if (text == "off" || text == "none") return json::Array{};
    const std::string rest = text == "on" ? "SV+RR+CR+UF" : text;
    json::Array bits;
    for (std::size_t at = 0; at <= rest.size();) {
      const auto plus = std::min(rest.find_first_of("+,", at), rest.size());
      bits.emplace_back(rest.substr(at, plus - at));
      at = plus + 1;
    }
    return bits;
  }
  if (field == "kernel" || field == "cuda" || field == "nccl_version" ||
      field == "nccl_net_gdr_level")
    return text;
  if (field == "ports" || field == "gid_type" || field == "switches" || field == "depth") {
    std::int64_t integer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
    if (error == std::errc{} && end == text.data() + text.size()) return integer;
  }
  if (text == "true" || text == "yes") return true;
  if (text == "false" || text == "no") return false;
  return text;
}

json::Array* hosts_of(json::Value& document) {
  json::Value* hosts = document.find("hosts");
  return hosts != nullptr ? hosts->as<json::Array>() : nullptr;
}

std::string_view string_member(const json::Value& object, std::string_view name) {
  const json::Value* member = object.find(name);
  const auto* text = member != nullptr ? member->as<std::string>() : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

bool set_software(json::Value& host, std::string_view field, const json::Value& value) {
  if (host.as<json::Object>() == nullptr) return false;
  if (host.find("software") == nullptr) host.set("software", json::Object{});
  json::Value* software = host.find("software");
  if (software->as<json::Object>() == nullptr) return false;
  software->set(field, value);
  return true;
}

json::Array* devices_of(json::Value& host) {
  json::Value* devices = host.find("devices");
  return devices != nullptr ? devices->as<json::Array>() : nullptr;
}

/// Applies FIELD alone to every host's software or every PCIe device's port.
bool set_everywhere(json::Value& document, std::string_view field, const json::Value& value) {
  json::Array* hosts = hosts_of(document);
  if (hosts == nullptr) return true;  // the reader reports the error
  for (json::Value& host : *hosts) {
    if (host.as<json::Object>() == nullptr) continue;
    if (contains(software_fields, field)) {
      set_software(host, field, value);
    } else if (contains(host_fields, field)) {
      host.set(field, value);
    } else if (contains(port_fields, field)) {
      if (json::Array* devices = devices_of(host))
        for (json::Value& device : *devices)
          if (device.as<json::Object>() != nullptr &&
              string_member(device, "kind") != "host-bridge")
            device.set(field, value);
    } else {
      return false;
    }
  }
  return true;
}

[[noreturn]] void refuse(const Setting& setting, std::string_view why) {
  throw InputError(
      fmt::format("--set {}={}: {}; write HOST/DEVICE.FIELD=VALUE, HOST.FIELD=VALUE, "
                  "fabric.FIELD=VALUE, staging.FIELD=VALUE, or "
                  "FIELD=VALUE with one of {}, {}",
                  printable(setting.key), printable(setting.value), printable(why, 200),
                  fmt::join(software_fields, ", "), fmt::join(port_fields, ", ")));
}

}  // namespace

Setting parse_setting(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw InputError(fmt::format("--set {}: write KEY=VALUE, as in h0/nic0.max_read_request=4096B",
                                 printable(text)));
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::vector<Setting> parse_settings(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) settings.push_back(parse_setting(text));
  return settings;
}

void apply_setting(json::Value& document, const Setting& setting) {
  const auto dot = setting.key.rfind('.');
  const std::string field = dot == std::string::npos ? setting.key : setting.key.substr(dot + 1);
  const json::Value value = value_of(field, setting.value);
  if (dot == std::string::npos) {
    if (!set_everywhere(document, field, value))
      refuse(setting, fmt::format("\"{}\" is not a field of all hosts or devices", field));
    return;
  }
  const std::string target = setting.key.substr(0, dot);
  if (target == "fabric" || target == "staging") {
    const bool known =
        target == "fabric" ? contains(fabric_fields, field) : contains(staging_fields, field);
    if (!known) refuse(setting, fmt::format("{} has no field \"{}\"", target, field));
    if (document.as<json::Object>() == nullptr) return;
    if (document.find(target) == nullptr) document.set(target, json::Object{});
    json::Value* object = document.find(target);
    if (object->as<json::Object>() != nullptr) object->set(field, value);
    return;
  }
  const auto slash = target.find('/');
  const std::string_view host_name = std::string_view(target).substr(0, slash);
  json::Array* hosts = hosts_of(document);
  if (hosts == nullptr) return;
  for (json::Value& host : *hosts) {
    if (host.as<json::Object>() == nullptr || string_member(host, "name") != host_name) continue;
    if (slash == std::string::npos) {
      if (contains(software_fields, field)) set_software(host, field, value);
      else host.set(field, value);
      return;
    }
    if (json::Array* devices = devices_of(host))
      for (json::Value& device : *devices)
        if (device.as<json::Object>() != nullptr &&
            string_member(device, "name") == std::string_view(target).substr(slash + 1)) {
          device.set(field, value);
          return;
        }
    refuse(setting,
           fmt::format("host {} has no device \"{}\"", host_name, target.substr(slash + 1)));
  }
  refuse(setting, fmt::format("there is no host \"{}\"", host_name));
}

}  // namespace gdr
