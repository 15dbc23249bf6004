#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr::sim {

/// The engine of this test process.
Simulator& simulator();
/// For scenarios written by hand.
const ModelLibrary& models();
/// A file below the project's folder.
std::string project_file(const std::string& path);

/// Prints expected value, actual value and deviation; fails if the deviation exceeds `tolerance`, a
/// share of the expected value.
void expect_close(const std::string& what, double expected, double actual, double tolerance);

/// A topology with all objects that a prediction needs.
struct Lab {
  explicit Lab(const std::string& file, const std::vector<std::string>& settings = {});
  Lab(const json::Value& document, const std::vector<std::string>& settings);

  [[nodiscard]] Transfer transfer(const std::string& from, const std::string& to, PathKind path,
                                  Bytes size, Operation operation = Operation::write) const;
  [[nodiscard]] Prediction run(const Transfer& transfer, const Options& options = {}) const;
  [[nodiscard]] Scenario scenario(const Transfer& transfer, const Drive& drive) const;

  Topology topology;
  Graph graph;
  Hardware hardware;
};

/// One host with one socket and two root ports, each with a switch that has two GPUs and a NIC. All
/// links are Gen4 x16.
json::Value two_switch_host();

}  // namespace gdr::sim
