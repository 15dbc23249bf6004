#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/study/measured.hpp"
#include "src/topology/topology.hpp"

namespace gdr::measured {

/// What a figure may have come from: a path on the topology as it is, or with one thing changed.
struct Candidate {
  std::string path;       ///< "gdr", "staged"...
  std::string condition;  ///< "", "half of the lanes of h0/gpu0", "all 8 drives"...
  bool changed = false;   ///< the condition is not how the topology has it
  double predicted = 0;   ///< bytes per second, or seconds
  double deviation = 0;   ///< measured / predicted - 1
};

enum class Sureness { sure, likely, open, none };
/// "sure", "likely", "open", "none"
std::string_view to_string(Sureness sureness);

struct Fit {
  Figure figure;
  std::string from;
  std::string to;
  std::vector<Candidate> candidates;  ///< nearest first
  Sureness sureness = Sureness::none;
  std::string verdict;  ///< a sentence
  std::string next;     ///< what to look at
};

/// True when it is known (sure, likely) that a figure came over a detour that nobody asked for, or
/// from something that is less than the topology says; and when a bandwidth that fits nothing is
/// less than 70 % of what the direct path gives.
bool is_downgrade(const Fit& fit);

/// Which transfer figures are of, where their tool does not say.
struct Ends {
  std::string from;
  std::string to;
};

/// Fits each figure. Ends that are not given are GPU 0 of the first host and of the second one; a
/// topology of one host gets an equal second one for tools that go over the network. Throws
/// InputError for ends that do not exist.
std::vector<Fit> fit(sim::Simulator& simulator, const Topology& topology,
                     const ModelLibrary& models, const std::vector<Figure>& figures,
                     const Ends& ends);

}  // namespace gdr::measured
