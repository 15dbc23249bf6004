#include "src/study/range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/catalog/model_variation.hpp"

namespace gdr::sim {
std::vector<Range> range_of(const Hardware& hardware,
                            const std::function<std::vector<double>(const Hardware&)>& predict) {
  const ModelLibrary& models = hardware.models();
  const Hardware asking(hardware.graph(), models);  // remembers what this prediction asks alone
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

}  // namespace gdr::sim
