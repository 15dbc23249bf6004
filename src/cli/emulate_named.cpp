#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>

#include "emu/keep/daemon.hpp"
#include "emu/keep/daemon_client.hpp"
#include "emu/keep/session_name.hpp"
#include "emu/run/run_folder.hpp"
#include "src/cli/emulate_options.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/common/json.hpp"
#include "src/report/output.hpp"

namespace gdr::cli {
namespace {

namespace fs = std::filesystem;

emu::SessionFiles files_of(const EmulateOptions& options) {
  return emu::session_files(emu::sessions_folder(), options.name);
}

/// Closes what the caller had open besides the standard descriptors: a background process must not
/// hold it.
void close_all_but(const std::vector<int>& kept) {
  std::vector<int> open;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
    open.push_back(std::stoi(entry.path().filename()));
  for (const int fd : open)
    if (fd > STDERR_FILENO && std::find(kept.begin(), kept.end(), fd) == kept.end()) close(fd);
}

void to_null(std::initializer_list<int> descriptors) {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : descriptors) dup2(null.get(), fd);
}

/// What the background process needs from the foreground one.
struct Handover {
  emu::SessionFiles files;
  UniqueFd lock;
  UniqueFd listener;
  UniqueFd ready;  ///< gets a byte when all guests are up
};

/// The background process: the guests live as long as it.
int keep(const EmulateOptions& options, const EmulationInput& input, Handover& handover,
         emu::Signals& signals) {
  setsid();
  close_all_but({handover.lock.get(), handover.listener.get(), handover.ready.get(), signals.fd()});
  to_null({STDIN_FILENO, STDOUT_FILENO});
  std::string failure;
  int exit_code = 0;
  const auto remove = [&] {
    emu::remove_files(handover.files);
    if (!failure.empty()) write_file(handover.files.failure, failure);
  };
  try {
    const emu::RunFolder folder;
    const emu::SessionPlan plan = input.plan(folder.path());
    emu::Daemon daemon(plan, handover.listener, signals, say);
    bool is_ready = false;
    const auto report = daemon.serve(parse_duration(options.timeout), [&] {
      is_ready = true;
      (void)!write(handover.ready.get(), "r", 1);
      handover.ready.reset();
      // From now on nobody reads it; whoever waits for the end of `up`'s output sees it.
      to_null({STDERR_FILENO});
    });
    exit_code = report.exit_code;
    if (!report.error.empty()) say(report.error);
    if (is_ready) failure = report.error;
    if (!is_ready && report.error.empty()) {
      say(options.name + " was taken down before its guests were up");
      exit_code = emu::exit_emulation_failed;
    }
    daemon.end(remove);
  } catch (const emu::Interrupted& interrupted) {
    exit_code = 128 + interrupted.signal;
    remove();
  } catch (...) {
    remove();
    throw;
  }
  return exit_code;
}

/// Waits until the guests are up, or the background process has ended.
int wait_for(pid_t daemon, const UniqueFd& ready, emu::Signals& signals) {
  for (;;) {
    pollfd fds[] = {{signals.fd(), POLLIN, 0}, {ready.get(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "poll");
    signals.take();
    if (fds[1].revents == 0) continue;
    char byte = 0;
    if (read(ready.get(), &byte, 1) == 1) return 0;
    int status = 0;
    waitpid(daemon, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

/// Removes the files of a name unless the background process holds them.
class FilesRemover {
 public:
  explicit FilesRemover(const emu::SessionFiles& files) : files_(files) {}
  ~FilesRemover() {
    if (!handed_over_) emu::remove_files(files_);
  }
  FilesRemover(const FilesRemover&) = delete;
  FilesRemover& operator=(const FilesRemover&) = delete;
  void hand_over() { handed_over_ = true; }

 private:
  const emu::SessionFiles& files_;
  bool handed_over_ = false;
};

}  // namespace

int emulate_up(const EmulateOptions& options, const ModelLibrary& models, emu::Signals& signals) {
  Handover handover{files_of(options), {}, {}, {}};
  EmulationInput input(options, models);
  parse_duration(options.timeout);
  if (options.replace && emu::in_use(handover.files))
    say(emu::take_down(handover.files, options.name, signals));
  auto lock = emu::take_name(handover.files);
  if (!lock)
    throw InputError(
        fmt::format("{} is in use; gdr emulate down {} ends it", options.name, options.name));
  FilesRemover remover(handover.files);
  handover.lock = std::move(*lock);
  input.prepare(signals);
  handover.listener = emu::listen_at(handover.files.socket);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  UniqueFd ready(ends[0]);
  handover.ready = UniqueFd(ends[1]);
  std::fflush(nullptr);
  const pid_t daemon = fork();
  if (daemon < 0) throw std::system_error(errno, std::generic_category(), "fork");
  remover.hand_over();
  if (daemon == 0) {
    (void)ready.release();  // closed with all the others
    return keep(options, input, handover, signals);
  }
  const std::string about = fmt::format("{} {} {} {}\n", daemon, input.topology().hosts.size(),
                                        input.topology().name, options.topology);
  (void)!pwrite(handover.lock.get(), about.data(), about.size(), 0);
  handover.lock.reset();
  handover.listener.reset();
  handover.ready.reset();
  try {
    const int exit_code = wait_for(daemon, ready, signals);
    signals.take();
    if (exit_code == 0)
      say(fmt::format("{} is up: gdr emulate in {} -- COMMAND", options.name, options.name));
    signals.take();  // the last moment at which the guests can still be taken down
    return exit_code;
  } catch (const emu::Interrupted&) {
    kill(daemon, SIGTERM);
    waitpid(daemon, nullptr, 0);
    throw;
  }
}

int emulate_in(const EmulateOptions& options, emu::Signals& signals) {
  const emu::SessionFiles files = files_of(options);
  const Duration timeout = parse_duration(options.timeout);
  if (options.commands.command.empty() && options.commands.on.empty())
    emu::commands_of(options.commands, {});
  const bool counters = options.traffic || !options.counters.empty() || !options.faults.empty();
  const std::string faults = fmt::format("{}", fmt::join(options.faults, ";"));
  const emu::RunRequest request{options.commands, fs::current_path(), counters, faults,
                                options.seed};
  const auto report = emu::run_in(files, options.name, request, timeout, signals, say);
  if (!report.error.empty()) say(report.error);
  if (!report.counters.empty()) report_traffic(options, json::parse(report.counters, "counters"));
  return report.exit_code;
}

int emulate_down(const EmulateOptions& options, emu::Signals& signals) {
  say(emu::take_down(files_of(options), options.name, signals));
  return 0;
}

namespace {

using ListRow = std::array<std::string, 5>;

/// What `up` wrote: process, hosts, name and file of the topology (which may have spaces), in one
/// line.
ListRow row_of(const std::string& name, std::string about) {
  while (about.ends_with('\n')) about.pop_back();
  ListRow row{name};
  for (std::size_t i = 1; i < row.size(); ++i) {
    const std::size_t space = i + 1 < row.size() ? about.find(' ') : std::string::npos;
    row[i] = about.substr(0, space);
    about.erase(0, space == std::string::npos ? space : space + 1);
  }
  return row;
}

}  // namespace

int emulate_list() {
  std::vector<std::vector<std::string>> rows{{"NAME", "PROCESS", "HOSTS", "TOPOLOGY", "FILE"}};
  const std::string folder = emu::sessions_folder();
  for (const std::string& name : emu::session_names(folder)) {
    const emu::SessionFiles files = emu::session_files(folder, name);
    if (!emu::in_use(files)) {
      emu::clean_up(files);
      continue;
    }
    const ListRow row = row_of(name, read_file(files.lock));
    rows.emplace_back(row.begin(), row.end());
  }
  if (rows.size() == 1) {
    say("no guests are up");
    return 0;
  }
  write_file("-", report::table(rows, {false, 0, 0}));
  return 0;
}

}  // namespace gdr::cli
