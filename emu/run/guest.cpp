#include "emu/run/guest.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::emu {

Guest::Guest(const GuestPlan& plan, std::vector<UniqueFd> network)
    : Guest(plan, std::move(network), socket_pair(), socket_pair(), socket_pair()) {}

Guest::Guest(const GuestPlan& plan, std::vector<UniqueFd> network, SocketPair control,
             SocketPair output, SocketPair errors)
    : plan_(plan),
      control_(std::move(control.ours)),
      output_(std::move(output.ours)),
      errors_(std::move(errors.ours)),
      console_(plan.console_file) {
  std::vector<int> pass{control.theirs.get(), output.theirs.get(), errors.theirs.get()};
  for (const UniqueFd& socket : network) pass.push_back(socket.get());
  write_file(plan.settings_file, plan.settings);
  write_file(plan.console_file, "");
  const std::string messages = plan.console_file + ".qemu";
  const UniqueFd log(open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (log.get() < 0) throw std::system_error(errno, std::generic_category(), messages);
  qemu_.emplace(plan.qemu, log.get(), pass);
  // Only QEMU holds the far ends now: they close when it ends.
}

std::string Guest::last_words() {
  const std::string console = read_file(plan_.console_file);
  if (const auto panic = console.find("Kernel panic"); panic != std::string::npos)
    return fmt::format(
        "the guest's kernel gave up: {}",
        printable(console.substr(panic, console.find_first_of("\r\n", panic) - panic), 200));
  if (qemu_->exit_code() == 128 + SIGBUS && !plan_.gpu_folder.empty())
    return fmt::format("QEMU was killed by SIGBUS: {}, where the memory of its GPUs is, is full",
                       plan_.gpu_folder);
  constexpr std::size_t shown = 600;
  std::string end = console + read_file(plan_.console_file + ".qemu");
  if (end.size() > shown) end.erase(0, end.size() - shown);
  return fmt::format("QEMU ended with exit code {}; last it said: {}", *qemu_->exit_code(),
                     printable(end, shown));
}

void Guest::take_control(const std::function<void(const GuestMessage&)>& message) {
  control_.read_lines([&](std::string_view line) {
    if (const auto parsed = parse_guest_message(line)) message(*parsed);
  });
}

void Guest::take_output(bool at_end, const std::function<void(Stream, std::string_view)>& line) {
  for (const auto& [channel, stream] :
       {std::pair(&output_, Stream::output), std::pair(&errors_, Stream::errors)}) {
    const auto pass_on = [&, which = stream](std::string_view text) { line(which, text); };
    channel->read_lines(pass_on);
    if (at_end) channel->finish(pass_on);
  }
  for (const std::string& said : console_.take()) line(Stream::errors, "gdr: " + said);
}

}  // namespace gdr::emu
