#include "src/study/range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/catalog/model_variation.hpp"

namespace gdr::study {

std::vector<Range> range_of(const Hardware& hardware,
                            const std::function<std::vector<double>(const Hardware&)>& predict) {
  const ModelLibrary& models = hardware.models();
  const Hardware asking(hardware.graph(), models);  // records the models that this prediction uses
  const std::vector<double> typical = predict(asking);
  const auto with = [&](const UncertainParameter& parameter, Bound bound) {
    const ModelLibrary other = varied(models, parameter, bound);
    return predict(Hardware(hardware.graph(), other));
  };
  const double own = std::pow(std::log1p(model_spread), 2);
  std::vector<Range> ranges(typical.size());
  std::vector<double> up(typical.size(), own);
  std::vector<double> down(typical.size(), own);
  for (const auto& [kind, model] : asking.models_asked())
    for (const UncertainParameter& parameter :
         uncertain_parameters(models, kind, model, estimate_spread)) {
      const std::vector<double> a = with(parameter, Bound::low);
      const std::vector<double> b = with(parameter, Bound::high);
      for (std::size_t i = 0; i < typical.size(); ++i) {
        const double least = std::min({a[i], b[i], typical[i]});
        const double most = std::max({a[i], b[i], typical[i]});
        down[i] += std::pow(std::log(typical[i] / least), 2);
        up[i] += std::pow(std::log(most / typical[i]), 2);
        if (most / least > 1 + least_contribution)
          ranges[i].contributions.push_back(
              {fmt::format("models/{}/{}.json {}", kind, model, parameter.name), least, most,
               parameter.estimate});
      }
    }
  for (std::size_t i = 0; i < typical.size(); ++i) {
    ranges[i].low = typical[i] * std::exp(-std::sqrt(down[i]));
    ranges[i].high = typical[i] * std::exp(std::sqrt(up[i]));
    std::stable_sort(ranges[i].contributions.begin(), ranges[i].contributions.end(),
                     [](const auto& x, const auto& y) { return x.high / x.low > y.high / y.low; });
  }
  return ranges;
}

PredictionRange range_of(sim::Simulator& simulator, const Hardware& hardware,
                         const Transfer& transfer, const sim::Options& options) {
  const TransferPlan plan = plan_transfer(hardware.graph(), hardware.models(), transfer);
  sim::Options near = options;
  near.near = true;
  auto ranges = range_of(hardware, [&](const Hardware& other) {
    const sim::Prediction p = sim::predict(simulator, other, transfer, near);
    return std::vector<double>{p.latency.us(), p.bandwidth.gigabytes_per_second()};
  });
  PredictionRange range{std::move(ranges[0]), std::move(ranges[1])};
  // No error of the model lifts a rate above the signalling rate of the ports.
  for (const auto& nic : {plan.from_nic, plan.to_nic}) {
    if (!nic) continue;
    const Bandwidth port = hardware.port_rate(*nic);
    range.bandwidth.high = std::min(range.bandwidth.high,
                                    port.gigabytes_per_second() * (options.bidirectional ? 2 : 1));
  }
  return range;
}

}  // namespace gdr::study
