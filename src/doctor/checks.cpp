#include "src/doctor/checks.hpp"

#include <algorithm>
#include <array>

namespace gdr::doctor {

std::string_view to_string(State state) {
  static constexpr std::array<std::string_view, 3> names{"fine", "unknown", "problem"};
  return names.at(static_cast<std::size_t>(state));
}

void sort_checks(Checks& checks) {
  std::stable_sort(checks.begin(), checks.end(), [](const Check& a, const Check& b) {
    const auto key = [](const Check& check) {
      return std::pair(-static_cast<int>(check.state),
                       check.state == State::problem ? check.severity : Severity::note);
    };
    return key(a) < key(b);
  });
}

Checks all_checks(const Facts& facts) {
  Checks checks;
  for (const auto family : {software_checks, device_checks, gid_checks, roce_checks, limit_checks,
                            rxe_checks, storage_checks})
    family(facts, checks);
  sort_checks(checks);
  return checks;
}

}  // namespace gdr::doctor
