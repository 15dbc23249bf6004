#include "emu/run/control_protocol.hpp"

#include <fmt/format.h>

#include <charconv>

#include "emu/process/shell.hpp"
#include "src/common/base64.hpp"

namespace gdr::emu {
namespace {

/// What follows `word` at the start of a line.
std::optional<std::string_view> behind(std::string_view line, std::string_view word) {
  if (!line.starts_with(word) || line.size() <= word.size() || line[word.size()] != ' ')
    return std::nullopt;
  return line.substr(word.size() + 1);
}

}  // namespace

std::optional<GuestMessage> parse_guest_message(std::string_view line) {
  if (line == "ready") return GuestReady{};
  if (const auto why = behind(line, "failed")) return GuestFailed{std::string(*why)};
  if (const auto text = behind(line, "exit")) {
    int code = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), code);
    constexpr int largest = 255;
    if (error != std::errc{} || end != text->data() + text->size() || code < 0 || code > largest)
      return std::nullopt;
    return CommandEnded{code};
  }
  if (const auto text = behind(line, "barrier")) {
    const auto space = text->find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == text->size())
      return std::nullopt;
    return BarrierReached{std::string(text->substr(0, space)),
                          std::string(text->substr(space + 1))};
  }
  return std::nullopt;
}

std::string run_message(const std::string& command, const std::string& folder) {
  return fmt::format(
      "run {}\n", encode_base64(fmt::format("cd {} || exit 125\n{}",
                                            shell_word(folder.empty() ? "/" : folder), command)));
}

std::string stop_message() { return "stop\n"; }

std::string barrier_message(const std::string& token, const std::string& failure) {
  return fmt::format("barrier {} {}\n", token, failure.empty() ? "go" : failure);
}

}  // namespace gdr::emu
