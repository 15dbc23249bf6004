#include "sim/engine/fluid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <exception>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>

#include "src/common/check.hpp"

// A transfer is one communication. SimGrid looks its route up when it starts; TableZone answers
// with the links of the transfer that is starting, so that any scenario runs on one pool of links
// made once. Completions call back. There are no actors, which makes this faster than the usual
// program with one actor per flow.

namespace gdr::sim {
namespace {

namespace s4u = simgrid::s4u;

constexpr std::size_t pool_links = 8192;
// SimGrid's sizes are whole numbers; we count 256ths of our units (bytes, nanoseconds).
constexpr double unit_scale = 256;

/// A zone whose route between its two hosts is the list of links that was set last.
class TableZone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  explicit TableZone(const std::string& name) : NetZoneImpl(name) {}
  void get_local_route(const simgrid::kernel::routing::NetPoint* /*from*/,
                       const simgrid::kernel::routing::NetPoint* /*to*/,
                       simgrid::kernel::routing::Route* into, double* /*latency*/) override {
    for (const Fluid::Link link : *next) into->link_list_.push_back(pool[link]->get_impl());
  }
  void get_graph(const s_xbt_graph_t* /*graph*/,
                 std::map<std::string, xbt_node_t, std::less<>>* /*nodes*/,
                 std::map<std::string, xbt_edge_t, std::less<>>* /*edges*/) override {}

  std::vector<s4u::Link*> pool;
  const std::vector<Fluid::Link>* next = nullptr;
};

/// SimGrid's engine replaces the handlers of SIGINT, SIGSEGV, SIGBUS and std::terminate when it is
/// made, for the whole program. On Ctrl-C it exits in the middle of a run, which destroys the
/// engine while it is in use. This object blocks the signals while it lives and then restores the
/// old handlers: a program that set none dies of SIGINT, and the shell sees status 130.
class SignalsKept {
 public:
  SignalsKept() : terminate_(std::get_terminate()) {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : signals) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &mask_);
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &actions_[i]);
  }
  ~SignalsKept() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &actions_[i], nullptr);
    std::set_terminate(terminate_);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalsKept(const SignalsKept&) = delete;
  SignalsKept& operator=(const SignalsKept&) = delete;

 private:
  static constexpr std::array signals{SIGINT, SIGSEGV, SIGBUS};
  std::array<struct sigaction, signals.size()> actions_{};
  sigset_t mask_{};
  std::terminate_handler terminate_;
};

}  // namespace

struct Fluid::Impl {
  struct Running {
    std::uint64_t token = 0;
    s4u::CommPtr comm;
  };

  int argc = 1;
  std::string program = "gdr";
  std::vector<char*> argv{program.data(), nullptr};
  std::unique_ptr<s4u::Engine> engine;
  TableZone* zone = nullptr;
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
  std::unordered_map<const void*, Running> running;
  s4u::CommPtr last_done;
  std::function<void(std::uint64_t)> done;

  void on_completion(const void* activity) {
    const auto found = running.find(activity);
    if (found == running.end()) return;
    // SimGrid still uses the activity after this callback: it is released when the next one ends.
    last_done = found->second.comm;
    const std::uint64_t token = found->second.token;
    running.erase(found);
    done(token);
  }
};

std::size_t Fluid::links() { return pool_links; }

Fluid::Fluid(std::function<void(std::uint64_t)> done) : impl_(std::make_unique<Impl>()) {
  static bool exists = false;
  check(!exists, "a second SimGrid engine in one process");
  exists = true;
  impl_->done = std::move(done);
  const SignalsKept kept;
  xbt_log_control_set("root.thres:error");
  impl_->engine = std::make_unique<s4u::Engine>(&impl_->argc, impl_->argv.data());
  // CM02 without its TCP window and without the traffic of acknowledgements is a plain fluid model:
  // stages bring their own latencies, windows and requests. The precision allows for times below a
  // nanosecond.
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("surf/precision:1e-12");
  impl_->zone = new TableZone("gdr");  // SimGrid owns and deletes it
  s4u::NetZone* net = impl_->zone->get_iface();
  impl_->from = net->create_host("from", 1e9)->seal();
  impl_->to = net->create_host("to", 1e9)->seal();
  for (std::size_t i = 0; i < pool_links; ++i)
    impl_->zone->pool.push_back(net->create_link(fmt::format("link{}", i), 1e9)->seal());
  net->seal();
  s4u::Activity::on_completion_cb(
      [impl = impl_.get()](const s4u::Activity& activity) { impl->on_completion(&activity); });
}

Fluid::~Fluid() = default;

void Fluid::set_capacity(Link link, double units_per_second) {
  check(units_per_second > 0, "a link without capacity");
  impl_->zone->pool.at(link)->set_bandwidth(units_per_second * unit_scale);
}

void Fluid::start(const std::vector<Link>& over, double units, std::uint64_t token) {
  impl_->zone->next = &over;
  const s4u::CommPtr comm = s4u::Comm::sendto_init(impl_->from, impl_->to);
  comm->set_payload_size(static_cast<std::uint64_t>(std::max(1.0, std::round(units * unit_scale))));
  impl_->running.emplace(comm.get(), Impl::Running{token, comm});
  comm->start();
}

void Fluid::after(double seconds, std::function<void()> action) {
  if (seconds <= 0) {
    action();
    return;
  }
  simgrid::kernel::timer::Timer::set(now() + seconds, std::move(action));
}

double Fluid::now() const { return s4u::Engine::get_clock(); }

void Fluid::run() {
  impl_->engine->run();
  impl_->last_done.reset();
}

}  // namespace gdr::sim
