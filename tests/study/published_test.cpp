#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "src/catalog/model_variation.hpp"
#include "src/common/json_reader.hpp"
#include "src/study/validate.hpp"
#include "tests/support/simulation.hpp"

// The published measurements that come with the models: how far off predictions may be.

namespace gdr::study {
namespace {

using sim::models;
using sim::project_file;
using sim::simulator;

const PublishedCases& published() {
  static const PublishedCases all =
      load_published({project_file("models/published")}, project_file("topologies"));
  return all;
}

using Results = std::vector<const CaseResult*>;

Results validation_of(const std::vector<CaseResult>& results) {
  Results some;
  for (const CaseResult& result : results)
    if (!result.published->calibration) some.push_back(&result);
  return some;
}

const std::vector<CaseResult>& results() {
  static const std::vector<CaseResult> all =
      run_published(simulator(), models(), published().cases, false);
  return all;
}

TEST(Published, ValidationErrors) {
  const Results validation = validation_of(results());
  const Errors all = errors_of(validation);
  fmt::print(
      "{} validation cases: |error| {:.1f} % in the median, {:.1f} % at the 90th percentile\n",
      all.count, all.median * 100, all.percentile90 * 100);
  EXPECT_GE(all.count, 100U);
  EXPECT_LE(all.median, 0.10);
  EXPECT_LE(all.percentile90, 0.30);
  std::map<std::string, Results> categories;
  for (const CaseResult* result : validation)
    categories[result->published->category].push_back(result);
  for (const auto& [name, some] : categories) {
    fmt::print("  {}: {} cases, median {:.1f} %\n", name, some.size(),
               errors_of(some).median * 100);
    EXPECT_LE(errors_of(some).median, 0.15) << name;
  }
}

TEST(Published, RangesHoldWhatWasMeasured) {
  const auto with_ranges = run_published(simulator(), models(), published().cases, true);
  const Errors errors = errors_of(validation_of(with_ranges));
  fmt::print("{:.0f} % of the measured values lie in the range, high/low {:.2f} in the median\n",
             errors.in_range * 100, errors.range);
  EXPECT_GE(errors.in_range, 0.80);
  EXPECT_LE(errors.range, 1.6);
  for (const CaseResult& result : with_ranges) {
    EXPECT_LT(result.low, result.predicted) << result.published->name;
    EXPECT_GT(result.high, result.predicted) << result.published->name;
  }
}

TEST(Published, RatiosOfPairsThatDifferInOneSetting) {
  const std::string file = project_file("tests/sim/one-setting.json");
  const json::Value document = json::parse_file(file);
  json::ObjectReader object(json::Node(document, file));
  object.expect_format();
  (void)object.required("note");
  std::map<std::string, const CaseResult*> by_name;
  for (const CaseResult& result : results()) by_name[result.published->name] = &result;
  int pairs = 0;
  int right = 0;
  for (const json::Node& node : object.required("pairs").array()) {
    json::ObjectReader pair(node);
    const std::string setting = pair.required("setting").string();
    const std::string first = pair.required("first").string();
    const std::string second = pair.required("second").string();
    ASSERT_TRUE(by_name.contains(first) && by_name.contains(second)) << first << ", " << second;
    const CaseResult& a = *by_name[first];
    const CaseResult& b = *by_name[second];
    const double measured = a.published->measured / b.published->measured;
    const double predicted = a.predicted / b.predicted;
    const bool close = std::abs(predicted / measured - 1) <= 0.20;
    fmt::print("{:<28} {} / {}: predicted {:.3f}, measured {:.3f}{}\n", setting, first, second,
               predicted, measured, close ? "" : "  <-");
    ++pairs;
    right += close ? 1 : 0;
  }
  fmt::print("{} of {} pairs within 20 %\n", right, pairs);
  EXPECT_GE(pairs, 25);
  EXPECT_GE(right, pairs * 8 / 10);
}

/// The library without the values of a source: generic ones replace them.
ModelLibrary without_source(const std::string& mark, int& replaced) {
  ModelLibrary library(models().folder());
  for (const std::string kind : {"cpu", "gpu", "nic", "switch"})
    for (const std::string& name : models().names(kind)) {
      const auto forget = [&]<typename Model>(const Shared<Model>& found) {
        Model model = *found;
        for_each_parameter(
            [&](const auto& /*declaration*/, auto& field, const auto& generic) {
              const auto* parameter = if_present(field);
              if (parameter == nullptr || parameter->basis.find(mark) == std::string::npos) return;
              field = generic;
              ++replaced;
            },
            model, models().get<Model>("generic"));
        return library.with(std::move(model));
      };
      library = std::visit(forget, models().find(kind, name));
    }
  return library;
}

TEST(Published, NoPlatformCarriesTheRest) {
  const double median = errors_of(validation_of(results())).median;
  std::set<std::string> marks;
  for (const PublishedCase& one : published().cases)
    if (one.calibration && !one.source_mark.empty()) marks.insert(one.source_mark);
  ASSERT_GE(marks.size(), 5U);
  for (const std::string& mark : marks) {
    int replaced = 0;
    const ModelLibrary library = without_source(mark, replaced);
    const auto without = run_published(simulator(), library, published().cases, false);
    const double moved = errors_of(validation_of(without)).median - median;
    fmt::print("without {}: {} parameters fall back, the median moves by {:+.1f} points\n", mark,
               replaced, moved * 100);
    EXPECT_GT(replaced, 0) << mark;
    EXPECT_LT(std::abs(moved), 0.05) << mark;
  }
}

TEST(Published, NoCaseHasAKnobOfItsOwn) {
  // A case may set how the machine was set up, but not how software stages or what models state.
  const std::set<std::string> allowed{"acs",
                                      "iommu",
                                      "iommu_page_size",
                                      "link",
                                      "max_payload",
                                      "max_read_request",
                                      "relaxed_ordering"};
  for (const PublishedCase& one : published().cases) {
    EXPECT_FALSE(load_topology(one.topology, one.settings).staging.has_value()) << one.name;
    for (const Setting& setting : one.settings) {
      const std::string field = setting.key.substr(setting.key.find_last_of('.') + 1);
      EXPECT_TRUE(allowed.contains(field)) << one.name << ": " << setting.key;
    }
  }
}

TEST(Published, EveryRecordIsRunOrLeftOutWithAReason) {
  std::set<std::string> names;
  for (const PublishedCase& one : published().cases) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_GT(one.measured, 0) << one.name;
  }
  for (const LeftOut& left : published().left_out) {
    EXPECT_TRUE(names.insert(left.name).second) << left.name;
    EXPECT_FALSE(left.reason.empty()) << left.name;
  }
}

}  // namespace
}  // namespace gdr::study
