#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/verdict/rules.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr {

/// A pair with its context and its rules' notes.
struct JudgedPair {
  PairContext context;
  nccl::PathType nccl_type = nccl::PathType::dis;  ///< NCCL's word for its route
  PairAnswer answer = PairAnswer::unknown;
  RuleNotes notes;
  bool used = false;  ///< the best GPU-NIC pair of a GPU
};

/// A finding before it is written: equal notes about several pairs, devices or ports of a host.
struct FindingGroup {
  std::string rule;
  Severity severity = Severity::note;
  std::string reason;
  std::string remedy;
  Place::Kind kind = Place::Kind::host;
  std::vector<Place> places;       ///< devices or ports, sorted as the file has them
  std::vector<std::size_t> pairs;  ///< indices of the pairs that it concerns, ascending
};

/// The verdict on one host, without its name.
struct HostVerdict {
  std::vector<JudgedPair> pairs;
  std::vector<std::size_t> best;  ///< index in pairs, for each GPU that has a NIC in its host
  std::vector<FindingGroup> findings;
};

/// The note that decides the pair's answer; nullptr: the pair works.
const RuleNote* deciding_note(const JudgedPair& pair);

/// Judges the only host of a topology.
HostVerdict judge_host(const Hardware& hardware);

/// Merges equal notes and gives them their severity, errors first.
std::vector<FindingGroup> group_findings(const std::vector<JudgedPair>& pairs);

/// "h0/sw0 downstream ports of h0/gpu0, h0/nic0, bits RR+CR"
std::string where_text(const FindingGroup& group, const HostVerdict& verdict,
                       const std::string& host);

}  // namespace gdr
