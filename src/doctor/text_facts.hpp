#pragma once

#include <string_view>

#include "src/doctor/facts.hpp"

namespace gdr::doctor {

/// Reads facts from the output of tools: lsmod, show_gids, ibdev2netdev, mlnx_qos, ethtool -S,
/// ulimit, ping, dmesg and error messages.
class TextFacts {
 public:
  explicit TextFacts(Facts& facts) : facts_(facts) {}
  void line(std::string_view text);

 private:
  bool modules(std::string_view text);
  bool gids(std::string_view text);
  bool flow_control(std::string_view text);
  bool counter(std::string_view text);
  bool limits(std::string_view text);
  bool settings(std::string_view text);
  bool versions(std::string_view text);
  void message(std::string_view text);

  Facts& facts_;
  bool lsmod_ = false;
  bool show_gids_ = false;
  bool asked_locked_memory_ = false;
};

}  // namespace gdr::doctor
