#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/common/error.hpp"
#include "src/topology/topology_json.hpp"
#include "src/verdict/verdict.hpp"

namespace verdict_test {

inline const gdr::ModelLibrary& models() {
  static const gdr::ModelLibrary library(GDR_PROJECT_DIR "/models");
  return library;
}

/// The parts of a small host as JSON text: two sockets with one host bridge each, and devices below
/// them.
struct HostText {
  std::string cpu = "epyc-rome";
  std::string software = R"("kernel": "5.15", "iommu": "off", "nvidia_peermem": true)";
  std::string devices{};
  std::string more{};  ///< further members of the host, each after a comma
};

inline std::string document(const HostText& host, const std::string& more = "") {
  return fmt::format(R"({{"format": 1, "name": "t", "hosts": [{{"name": "h0", "software": {{{}}},
    "sockets": [{{"name": "cpu0", "model": "{}"}}, {{"name": "cpu1", "model": "{}"}}],
    "numa_nodes": [{{"name": "numa0", "socket": "cpu0"}}, {{"name": "numa1", "socket": "cpu1"}}],
    "devices": [{{"name": "hb0", "kind": "host-bridge", "under": "numa0"}}, {{"name": "hb1", "kind": "host-bridge", "under": "numa1"}}, {}]{}}}]{}}})",
                     host.software, host.cpu, host.cpu, host.devices, host.more, more);
}

inline gdr::Verdict judge(const std::string& text, const std::vector<gdr::Setting>& settings = {}) {
  const gdr::Topology topology =
      gdr::read_topology(gdr::json::parse(text, "test.json"), "test.json", ".", settings);
  return gdr::judge(gdr::Graph(topology), models());
}

inline gdr::Verdict judge(const HostText& host, const std::vector<gdr::Setting>& settings = {}) {
  return judge(document(host), settings);
}

inline const gdr::Pair& pair(const gdr::Verdict& verdict, const std::string& from,
                             const std::string& to) {
  const auto found = std::find_if(verdict.pairs.begin(), verdict.pairs.end(),
                                  [&](const gdr::Pair& p) { return p.from == from && p.to == to; });
  if (found == verdict.pairs.end()) throw gdr::InputError("no pair " + from + " " + to);
  return *found;
}

/// The first finding of a rule, or one with an empty rule.
inline gdr::Finding finding(const gdr::Verdict& verdict, const std::string& rule) {
  const auto found = std::find_if(verdict.findings.begin(), verdict.findings.end(),
                                  [&](const gdr::Finding& f) { return f.rule == rule; });
  return found == verdict.findings.end() ? gdr::Finding{} : *found;
}

inline bool fires(const gdr::Verdict& verdict, const std::string& rule) {
  return !finding(verdict, rule).rule.empty();
}

/// A GPU and a NIC below one switch whose ports do not redirect.
inline std::string one_switch(const std::string& gpu = "", const std::string& nic = "",
                              const std::string& acs = R"("acs": [])") {
  return fmt::format(
      R"({{"name": "sw0", "kind": "switch", "model": "pex88096", "under": "hb0", "link": "gen4x16"}},
    {{"name": "gpu0", "kind": "gpu", "model": "a100-pcie-40gb", "under": "sw0", "link": "gen4x16", {2}{0}}},
    {{"name": "nic0", "kind": "nic", "model": "connectx-6-hdr", "under": "sw0", "link": "gen4x16", {2}{1}}})",
      gpu, nic, acs);
}

/// A GPU below hb0 and a NIC below the host bridge or NUMA node `place`.
inline std::string apart(const std::string& place, const std::string& gpu = "a100-pcie-40gb",
                         const std::string& nic = "connectx-6-hdr") {
  return fmt::format(
      R"({{"name": "gpu0", "kind": "gpu", "model": "{}", "under": "hb0", "link": "gen4x16"}},
    {{"name": "nic0", "kind": "nic", "model": "{}", "under": "{}", "link": "gen4x16"}})",
      gpu, nic, place);
}

}  // namespace verdict_test
