#include "emu/keep/daemon_protocol.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

namespace gdr::emu {
namespace {

constexpr char separator = '\0';

void add(std::string& text, std::string_view field) {
  text += field;
  text += separator;
}

/// nullopt unless the text ends with a separator.
std::optional<std::vector<std::string>> fields_of(std::string_view text) {
  std::vector<std::string> fields;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (end == std::string_view::npos) return std::nullopt;
    fields.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return fields;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string encode(const RunRequest& request) {
  std::string text;
  add(text, request.folder);
  add(text, request.counters ? "counters" : "");
  add(text, request.faults);
  add(text, std::to_string(request.seed));
  add(text, std::to_string(request.commands.command.size()));
  for (const std::string& word : request.commands.command) add(text, word);
  for (const auto& [host, line] : request.commands.on) {
    add(text, host);
    add(text, line);
  }
  return text;
}

std::optional<RunRequest> decode_run_request(std::string_view text) {
  const auto fields = fields_of(text);
  constexpr std::size_t fixed = 5;
  if (!fields || fields->size() < fixed) return std::nullopt;
  RunRequest request;
  request.folder = (*fields)[0];
  request.counters = (*fields)[1] == "counters";
  request.faults = (*fields)[2];
  const auto seed = number_of((*fields)[3]);
  const auto words = number_of((*fields)[4]);
  const std::size_t rest = fields->size() - fixed;
  if (!seed || !words || *words > rest || (rest - *words) % 2 != 0) return std::nullopt;
  request.seed = *seed;
  const auto command = fields->begin() + fixed;
  const auto on = command + static_cast<std::ptrdiff_t>(*words);
  request.commands.command.assign(command, on);
  for (auto field = on; field != fields->end(); field += 2)
    request.commands.on.emplace_back(*field, *(field + 1));
  return request;
}

void Outbox::put(char letter, std::string_view text) {
  do {
    packets_.push_back(letter + std::string(text.substr(0, packet_size)));
    text.remove_prefix(std::min(packet_size, text.size()));
  } while (!text.empty());
}

bool Outbox::flush(int socket) {
  while (!packets_.empty()) {
    const ssize_t sent =
        send(socket, packets_.front().data(), packets_.front().size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    packets_.pop_front();
  }
  return true;
}

std::optional<std::string> receive_packet(int socket) {
  std::string packet(longest_request, '\0');
  for (;;) {
    const ssize_t got = recv(socket, packet.data(), packet.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    packet.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return packet;
  }
}

}  // namespace gdr::emu
