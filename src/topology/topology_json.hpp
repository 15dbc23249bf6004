#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/common/json.hpp"
#include "src/topology/topology.hpp"

namespace gdr {

/// A what-if: "h0/nic0.max_read_request=4096B", "h0.iommu=translate", "acs=off".
struct Setting {
  std::string key;
  std::string value;
};

/// Reads a topology file, inserts the server files it refers to, applies `settings` and checks
/// everything: unknown or missing members, wrong units, duplicate names, dangling references,
/// cycles. Throws InputError "FILE: at PATH: ...".
Topology load_topology(const std::string& path, const std::vector<Setting>& settings = {});

/// The same for a document in memory. `name` stands for the file in errors; relative server paths
/// start at `folder`.
Topology read_topology(json::Value document, const std::string& name, const std::string& folder,
                       const std::vector<Setting>& settings = {});

/// The JSON form; load_topology() returns the same topology from it.
json::Value to_json(const Topology& topology);

/// Splits KEY=VALUE. Throws InputError.
Setting parse_setting(std::string_view text);
std::vector<Setting> parse_settings(const std::vector<std::string>& texts);

}  // namespace gdr
