#pragma once

#include <cstddef>
#include <memory>

#include "sim/flow/scenario.hpp"

namespace gdr::sim {

/// The discrete-event engine, on SimGrid. SimGrid has one engine per process, so a process has at
/// most one of these (a second one is a bug and ends the program); it runs any number of scenarios
/// one after another.
class Engine {
 public:
  Engine();
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Runs a scenario until every finite flow is done and every endless one steady. Deterministic.
  /// Throws InputError for a scenario with more resources and stages than the engine has links.
  Outcome run(const Scenario& scenario);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gdr::sim
