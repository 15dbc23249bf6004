#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/image/kernel_cache.hpp"
#include "emu/keep/daemon_protocol.hpp"
#include "emu/process/signals.hpp"
#include "emu/run/run_once.hpp"
#include "emu/run/session.hpp"
#include "src/common/unique_fd.hpp"

namespace gdr::emu {

/// Keeps guests running and executes the requests of clients in them, one at a time, in order.
class Keeper {
 public:
  Keeper(const SessionPlan& plan, const UniqueFd& listener, Signals& signals, Say say);

  /// Serves until a client sends `down`. Calls `on_ready` once, when all guests are up. Returns an
  /// exit code and a reason when guests are not up within `boot_timeout` or a guest fails. Throws
  /// Interrupted and what Session throws.
  Outcome serve(Duration boot_timeout, const std::function<void()>& on_ready);

  /// Ends the guests, calls `before_closing`, then closes the connections, which tells the clients
  /// that `down` is complete.
  void end(const std::function<void()>& before_closing);

 private:
  struct Client {
    UniqueFd socket;
    Outbox out{};
    std::optional<RunRequest> request{};
    bool closing = false;  // close when everything has been sent
    bool gone = false;
  };

  void start();
  void wait(int limit_ms);
  void accept();
  void read(Client& client);
  void obey(Client& client, const std::string& packet);
  void stop(Client& client);
  void run_next();
  void finish_active();
  [[nodiscard]] std::vector<fabric::PortOptions> faults_of(const RunRequest& request) const;
  void begin_faults(const RunRequest& request);
  void end_faults();
  void flush();
  Outcome failed(const std::string& why);
  [[nodiscard]] bool takes_output() const { return active_ == nullptr || !active_->out.full(); }

  const SessionPlan& plan_;
  const UniqueFd& listener_;
  Signals& signals_;
  Say say_;
  std::unique_ptr<Session> session_;
  std::list<Client> clients_;
  Client* active_ = nullptr;
  std::optional<std::chrono::steady_clock::time_point>
      stop_by_{};            // deadline for guests to stop their command
  bool own_faults_ = false;  // the faults of a request are active
  bool down_ = false;
};

}  // namespace gdr::emu
