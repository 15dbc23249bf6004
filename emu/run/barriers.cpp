#include "emu/run/barriers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::emu {

Barriers::Barriers(std::vector<std::string> names, const std::vector<bool>& running)
    : names_(std::move(names)) {
  for (const bool runs : running) states_.push_back(runs ? State::runs : State::none);
}

Barriers::Answers Barriers::reached(std::size_t host, const std::string& token,
                                    const std::string& barrier) {
  if (host >= states_.size() || states_[host] != State::runs)
    return {{host, token, "no command runs on this host"}};
  const auto gone = std::find(states_.begin(), states_.end(), State::has_ended);
  if (gone != states_.end())
    return {{host, token,
             fmt::format("the command of {} has ended",
                         names_[static_cast<std::size_t>(gone - states_.begin())])}};
  auto& there = waiting_[barrier];
  there.push_back({host, token});
  for (std::size_t other = 0; other < states_.size(); ++other)
    if (states_[other] == State::runs &&
        std::none_of(there.begin(), there.end(),
                     [&](const Waiting& waiting) { return waiting.host == other; }))
      return {};
  Answers answers;
  for (Waiting& waiting : there) answers.push_back({waiting.host, std::move(waiting.token), ""});
  waiting_.erase(barrier);
  return answers;
}

Barriers::Answers Barriers::ended(std::size_t host) {
  states_[host] = State::has_ended;
  Answers answers;
  for (auto& [barrier, there] : waiting_)
    for (Waiting& waiting : there)
      if (waiting.host != host)
        answers.push_back({waiting.host, std::move(waiting.token),
                           fmt::format("the command of {} has ended", names_[host])});
  waiting_.clear();
  return answers;
}

}  // namespace gdr::emu
