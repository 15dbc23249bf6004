#include "emu/process/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "src/common/error.hpp"

namespace gdr::emu {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// Runs in the child, between fork and exec. Descriptors are first moved away from the numbers that
/// they are to get.
[[noreturn]] void become(char* const* arguments, int output, std::vector<int>& pass, pid_t parent,
                         int report) {
  constexpr int out_of_the_way = 200;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  report = fcntl(report, F_DUPFD_CLOEXEC, out_of_the_way);
  const int null = fcntl(open("/dev/null", O_RDONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, out_of_the_way);
  output = fcntl(output, F_DUPFD_CLOEXEC, out_of_the_way);
  for (int& descriptor : pass) descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, out_of_the_way);
  dup2(null, 0);
  dup2(output, 1);
  dup2(output, 2);
  for (std::size_t i = 0; i < pass.size(); ++i) dup2(pass[i], 3 + static_cast<int>(i));
  execvp(arguments[0], arguments);
  const int error = errno;
  (void)!write(report, &error, sizeof error);
  _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, int output, std::vector<int> pass) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  const UniqueFd report(ends[0]);
  UniqueFd child_end(ends[1]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) become(pointers.data(), output, pass, parent, child_end.get());
  child_end.reset();
  int error = 0;
  if (read(report.get(), &error, sizeof error) != static_cast<ssize_t>(sizeof error)) return;
  waitpid(pid_, nullptr, 0);
  errno = error;
  fail(arguments[0]);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_code_(other.exit_code_) {}

Process::~Process() {
  if (pid_ < 0 || exit_code_) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> Process::exit_code() {
  int status = 0;
  if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_)
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

CommandResult run_to_end(const std::vector<std::string>& arguments, Signals& signals) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  Process process(arguments, to.get());
  to.reset();
  CommandResult result;
  bool open = true;
  while (open || !process.exit_code()) {
    pollfd ready[] = {{signals.fd(), POLLIN, 0}, {open ? from.get() : -1, POLLIN, 0}};
    constexpr int tick_ms = 100;  // another wait may have taken SIGCHLD
    if (poll(ready, 2, tick_ms) < 0 && errno != EINTR) fail("poll");
    if (ready[0].revents != 0) signals.take();
    if (ready[1].revents == 0) continue;
    char buffer[4096];
    const ssize_t got = read(from.get(), buffer, sizeof buffer);
    if (got > 0) result.output.append(buffer, static_cast<std::size_t>(got));
    else open = false;
  }
  result.exit_code = *process.exit_code();
  return result;
}

std::string run_or_throw(const std::vector<std::string>& arguments, Signals& signals,
                         std::string_view purpose) {
  if (!is_in_path(arguments[0]))
    throw InputError(fmt::format("{}: the program {} is not installed", purpose, arguments[0]));
  CommandResult result = run_to_end(arguments, signals);
  if (result.exit_code == 0) return std::move(result.output);
  constexpr std::size_t shown = 600;
  const std::string& all = result.output;
  throw InputError(fmt::format("{}: \"{}\" failed with {}: {}", purpose, fmt::join(arguments, " "),
                               result.exit_code,
                               all.size() > shown ? all.substr(all.size() - shown) : all));
}

bool is_in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace gdr::emu
