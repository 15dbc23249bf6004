#include "tests/transport/guests/campaign.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "emu/fabric/random.hpp"
#include "tests/transport/guests/agent.hpp"
#include "tests/transport/guests/resources.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

/// splitmix64, as in the fabric: consecutive seeds have nothing in common.
class Random {
 public:
  explicit Random(std::uint64_t seed) : numbers_({seed}, "campaign") {}
  std::uint64_t below(std::uint64_t limit) { return numbers_.at(++count_, 0) % limit; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }

 private:
  fabric::RandomNumbers numbers_;
  std::uint64_t count_ = 0;
};

constexpr Duration limit{15};
constexpr unsigned hang_seconds = 120;

enum class Spoil { nothing, kill_peer, close_peer, free_here, free_there, refuse };

/// Everything that a seed decides.
struct Schedule {
  explicit Schedule(std::uint64_t seed);
  TransportPath path = TransportPath::gdr;
  bool by_name = true;
  MemoryChoice::Kind memory = MemoryChoice::Kind::fake;
  bool check = false;
  unsigned queue_pairs = 1;
  unsigned nics = 1;
  Spoil spoil = Spoil::nothing;
  unsigned steps = 0;  // before the fault
  bool refuse_here = false;
  std::vector<std::size_t> sizes;  // of operations: write, read, send, write, ...
  std::string faults;
};

Schedule::Schedule(std::uint64_t seed) {
  Random random(seed);
  path = static_cast<TransportPath>(random.below(3));
  memory = random.one_in(2) ? MemoryChoice::Kind::fake : MemoryChoice::Kind::bar;
  by_name = !random.one_in(3);
  check = random.one_in(4);
  queue_pairs = static_cast<unsigned>(1 + random.below(3));
  nics = random.one_in(4) ? 2 : 1;
  spoil = random.one_in(2) ? Spoil::nothing : static_cast<Spoil>(1 + random.below(5));
  steps = static_cast<unsigned>(random.below(200));
  refuse_here = random.one_in(2);
  for (std::uint64_t i = 3 + random.below(4); i > 0; --i)
    sizes.push_back(1 + random.below(random.one_in(2) ? 500000 : 9000));
  const std::string only = path == TransportPath::tcp ? "" : ",only=roce";
  std::string all;
  if (random.one_in(2))
    all += fmt::format(",loss={:.2f}%", 0.05 * static_cast<double>(random.below(30)));
  if (random.one_in(2))
    all += fmt::format(",reorder={:.2f}%,reorder-by=2ms",
                       0.05 * static_cast<double>(random.below(40)));
  if (random.one_in(3))
    all += fmt::format(",corrupt={:.2f}%", 0.05 * static_cast<double>(random.below(20)));
  if (random.one_in(5)) all += ",duplicate=0.5%";
  if (all.empty()) all = ",loss=0%";
  faults = "*:" + all.substr(1) + only;
  if (!random.one_in(3)) return;
  // A flap that retries outlast, a longer one, or the end of the link.
  const std::string end = random.one_in(3) ? std::string()
                          : random.one_in(2)
                              ? fmt::format(",down-for={}ms", 50 + random.below(2000))
                              : fmt::format(",down-frames={}", 1 + random.below(40));
  faults += fmt::format(";h{}/nic0.{}:down-after={}{}{}", random.below(2),
                        random.one_in(2) ? "tx" : "rx", 5 + random.below(120), end, only);
}

struct Step {
  enum class Kind { write, read, send } kind = Kind::write;
  std::size_t at = 0;
  std::size_t size = 0;
  Result<OperationId> here = Status(Cause::invalid, "not asked");
  Result<OperationId> there = Status(Cause::invalid, "not asked");
};

class Run {
 public:
  explicit Run(std::uint64_t seed) : seed_(seed), schedule_(seed) {}
  /// Empty, or what was wrong.
  std::string result();
  [[nodiscard]] const std::string& ended() const { return ended_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

 private:
  PairOptions options() const;
  void refuse(const std::string& line) const;
  std::string transfer(Pair& pair);
  std::string set_up(Pair& pair);
  void ask(Pair& pair);
  void spoil(Pair& pair);
  std::string collect(Pair& pair, Step& step);
  std::string compare(Pair& pair, const Step& step, std::uint32_t number);
  std::string named(const Status& status) {
    if (ended_.empty()) ended_ = status.to_string();
    return status.text().empty() ? "an error without a word" : "";
  }

  std::uint64_t seed_;
  Schedule schedule_;
  std::string ended_;
  std::vector<Step> steps_;
  std::size_t size_ = 0;
  memory::DevicePointer here_;
  memory::DevicePointer there_;
  std::vector<std::uint8_t> bytes_here_;
  std::vector<std::uint8_t> bytes_there_;
  std::map<std::uint32_t, Arrival> arrivals_;  // of writes, by their immediates
  bool alive_ = true;
};

PairOptions Run::options() const {
  PairOptions options;
  if (schedule_.nics == 2) options.nics_a = options.nics_b = {"x0", "x1"};
  options.both([&](TransportOptions& side) {
    if (schedule_.by_name) side.path = schedule_.path;
    side.level = NicDistance::sys;
    side.check = schedule_.check;
    side.queue_pairs = schedule_.queue_pairs;
    side.chunk = Bytes{16384};
    side.limit = limit;
  });
  options.memory([&](MemoryChoice& memory) {
    memory.kind = schedule_.memory;
    memory.capacity = Bytes{64U << 20U};
    memory.faults.stale_reads = 0.5;
    memory.faults.seed = seed_;
    memory.faults.copy_delay = static_cast<unsigned>(seed_ % 3);
  });
  if (schedule_.spoil == Spoil::refuse && schedule_.memory == MemoryChoice::Kind::fake)
    (schedule_.refuse_here ? options.memory_a : options.memory_b).faults.largest_registration =
        Bytes{100000};
  return options;
}

/// The guest's kernel refuses to register its GPU.
void Run::refuse(const std::string& line) const {
  if (schedule_.spoil != Spoil::refuse || schedule_.memory != MemoryChoice::Kind::bar) return;
  const std::string command = "echo '" + line + "' >/dev/gdr-refusals";
  (void)(schedule_.refuse_here ? run_here(command) : guest_world->run(command));
}

std::string Run::result() {
  refuse(fmt::format("gpu0-nic0,after={} campaign", seed_ % 3));
  std::string wrong;
  try {
    Pair pair(options());
    wrong = transfer(pair);
  } catch (const InputError& error) {
    // An impossible transport is refused when it is made.
    if (schedule_.spoil == Spoil::refuse)
      wrong = named({Cause::registration_refused, error.what()});
    else wrong = error.what();
  }
  if (alive_) refuse("none");
  return wrong;
}

std::string Run::set_up(Pair& pair) {
  EndConnection& a = *pair.a.connection;
  EndConnection& b = *pair.b.connection;
  if (!pair.run_until([&] { return a.ready().has_value() && b.ready().has_value(); }, Duration{40}))
    return "the set-up never ended";
  if (a.status().ok() && b.status().ok()) return "";
  const Status why = a.status().ok() ? b.status() : a.status();
  const bool both =
      pair.run_until([&] { return !a.status().ok() && !b.status().ok(); }, Duration{40});
  return both ? named(why) : "one side alone gave up";
}

void Run::ask(Pair& pair) {
  const RemoteRange range = *pair.a.connection->shared(1);
  std::size_t at = 0;
  for (std::size_t i = 0; i < schedule_.sizes.size(); ++i) {
    Step step;
    step.kind = static_cast<Step::Kind>(i % 3);
    step.size = schedule_.sizes[i];
    step.at = at;
    at += step.size + 13;
    const auto local = here_ + Bytes{step.at};
    const auto immediate = static_cast<std::uint32_t>(i);
    EndConnection& a = *pair.a.connection;
    if (step.kind == Step::Kind::send)
      step.there = pair.b.connection->receive(there_ + Bytes{step.at}, Bytes{step.size});
    step.here = step.kind == Step::Kind::write
                    ? a.write(local, range, Bytes{step.at}, Bytes{step.size}, immediate)
                : step.kind == Step::Kind::read
                    ? a.read(local, range, Bytes{step.at}, Bytes{step.size})
                    : a.send(local, Bytes{step.size});
    steps_.push_back(std::move(step));
  }
}

void Run::spoil(Pair& pair) {
  for (unsigned i = 0; i < schedule_.steps; ++i) pair.step();
  switch (schedule_.spoil) {
    case Spoil::kill_peer:
      guest_world->die();
      alive_ = false;
      return;
    case Spoil::close_peer:
      return pair.b.connection->close();
    case Spoil::free_here:
      (void)pair.a.memory->free(here_);
      return;
    case Spoil::free_there:
      (void)pair.b.memory->free(there_);
      return;
    default:
      return;
  }
}

std::string Run::transfer(Pair& pair) {
  if (std::string wrong = set_up(pair); !wrong.empty() || !ended_.empty()) return wrong;
  for (const std::size_t size : schedule_.sizes) size_ += size + 13;
  here_ = pair.a.allocate(size_);
  there_ = pair.b.allocate(size_);
  bytes_here_ = End::pattern(size_, static_cast<unsigned>(2 * seed_));
  bytes_there_ = End::pattern(size_, static_cast<unsigned>(2 * seed_ + 1));
  pair.a.put(here_, bytes_here_);
  pair.b.put(there_, bytes_there_);
  EndConnection& a = *pair.a.connection;
  if (Status shared = pair.b.connection->share(1, there_, Bytes{size_}); !shared.ok())
    return named(shared);
  if (!pair.run_until([&] { return a.shared(1).has_value() || !a.status().ok(); }, Duration{40}))
    return "a share never arrived";
  if (!a.status().ok()) return named(a.status());
  ask(pair);
  spoil(pair);
  std::string wrong;
  for (Step& step : steps_)
    if (wrong.empty()) wrong = collect(pair, step);
  return wrong;
}

/// Waits for the end of one operation; after a good one the bytes must be right.
std::string Run::collect(Pair& pair, Step& step) {
  const auto number = static_cast<std::uint32_t>(&step - steps_.data());
  if (!step.here.ok()) return named(step.here.status());
  std::optional<OperationResult> done;
  const Duration asked = pair.now();
  const auto ended = [&] {
    return (done = pair.a.connection->test(step.here.value())).has_value();
  };
  if (!pair.run_until(ended, limit + Duration{20}))
    return fmt::format("operation {} never ended", number);
  if ((pair.now() - asked).seconds > limit.seconds + 3)
    return fmt::format("operation {} ended after its limit", number);
  if (!done->status.ok()) return named(done->status);
  // Bytes in freed memory, or of a peer that has gone, are undefined.
  if (!alive_ || schedule_.spoil == Spoil::free_here || schedule_.spoil == Spoil::free_there)
    return "";
  return compare(pair, step, number);
}

std::string Run::compare(Pair& pair, const Step& step, std::uint32_t number) {
  EndConnection& b = *pair.b.connection;
  if (step.kind == Step::Kind::write) {
    // Over several queue pairs they may arrive in another order than requested.
    bool twice = false;
    const auto told = [&] {
      while (const auto arrival = b.arrival())
        twice = !arrivals_.emplace(arrival->immediate, *arrival).second || twice;
      return twice || arrivals_.contains(number) || !b.status().ok();
    };
    if (!pair.run_until(told, Duration{40}))
      return fmt::format("B was never told of operation {}", number);
    if (twice) return "B was told twice of one operation";
    if (!arrivals_.contains(number)) return named(b.status());
    const Bytes size = arrivals_.at(number).size;
    if (size != Bytes{step.size})
      return fmt::format("B was told of {} by operation {}", to_string(size), number);
  }
  if (step.kind == Step::Kind::send) {
    const OperationResult received = pair.finish(pair.b, step.there);
    if (!received.status.ok()) return named(received.status);
  }
  const bool fetched = step.kind == Step::Kind::read;
  const End& end = fetched ? pair.a : pair.b;
  const auto& source = fetched ? bytes_there_ : bytes_here_;
  const auto begin = source.begin() + static_cast<std::ptrdiff_t>(step.at);
  const auto bytes = end.get((fetched ? here_ : there_) + Bytes{step.at}, step.size);
  if (!std::equal(bytes.begin(), bytes.end(), begin))
    return fmt::format("operation {} ended well with wrong bytes", number);
  return "";
}

std::string spoil_word(Spoil spoil) {
  constexpr const char* words[] = {
      "nothing",           "peer killed",        "peer closes",
      "memory freed here", "memory freed there", "registration refused"};
  return words[static_cast<std::size_t>(spoil)];
}

}  // namespace

std::string faults_of(std::uint64_t seed) { return Schedule(seed).faults; }

int run_campaign(std::uint64_t seed) {
  alarm(hang_seconds);
  const std::string before = resources_here();
  const Duration start = make_ibverbs()->now();
  Run run(seed);
  std::string wrong = run.result();
  const double seconds = (make_ibverbs()->now() - start).seconds;
  if (const std::string after = resources_after(before); wrong.empty() && after != before)
    wrong = "something is left:\n" + before + "became\n" + after;
  const Schedule& schedule = run.schedule();
  fmt::print("seed {}: {}{}, {}, {} queue pairs, {} NICs, {}, --fault '{}': {} ({:.1f} s)\n", seed,
             schedule.by_name ? "" : "auto for ", to_string(schedule.path),
             schedule.memory == MemoryChoice::Kind::bar ? "bar" : "fake", schedule.queue_pairs,
             schedule.nics, spoil_word(schedule.spoil), schedule.faults,
             !wrong.empty()        ? "WRONG: " + wrong
             : run.ended().empty() ? "right bytes"
                                   : "named error: " + run.ended(),
             seconds);
  return wrong.empty() ? 0 : 1;
}

int serve_campaign(std::uint64_t seed) {
  alarm(hang_seconds);
  const std::string before = resources_here();
  const pid_t child = fork();
  if (child < 0) throw InputError("no process can be made");
  if (child == 0) {
    alarm(hang_seconds);
    _exit(serve_agent());
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
                      Schedule(seed).spoil == Spoil::kill_peer;
  if (const std::string after = resources_after(before); after != before)
    throw InputError("something is left:\n" + before + "became\n" + after);
  if (killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return 0;
  throw InputError(
      fmt::format("seed {}: the end on this host ended with status {:#x}", seed, status));
}

}  // namespace gdr::transport
