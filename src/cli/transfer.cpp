#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "src/cli/commands.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/memory/backends.hpp"
#include "src/report/output.hpp"
#include "src/transport/measure.hpp"
#include "src/transport/verbs/double.hpp"

namespace gdr::cli {
namespace {

using namespace transport;

struct Options {
  std::string host;
  std::string path = "auto";
  std::string memory = "host";
  std::string operation = "write";
  std::string sizes = "64KiB";
  std::string devices;
  std::string level = "PXB";
  std::string set_up = "tcp";
  std::string format = "text";
  std::string limit;
  std::string connect_limit;
  std::string chunk = "64KiB";
  unsigned iterations = 1000;
  unsigned queue_pairs = 1;
  unsigned depth = 128;
  unsigned bounce_buffers = 8;
  unsigned timeout = 17;
  int gid_index = -1;
  std::uint16_t port = 18515;
  bool check = false;
  bool latency = false;
  bool loopback = false;
  bool extra_copy = false;
};

/// perftest's "all": 2 bytes to 8 MiB, doubling.
std::vector<Bytes> sizes_of(const std::string& text) {
  std::vector<Bytes> sizes;
  if (text == "all") {
    for (std::uint64_t size = 2; size <= (std::uint64_t{8} << 20U); size *= 2)
      sizes.push_back(Bytes{size});
    return sizes;
  }
  for (const std::string& part : split(text)) sizes.push_back(parse_bytes(part));
  if (sizes.size() > 64)
    throw InputError(fmt::format("--size: {} sizes; 64 at most", sizes.size()));
  return sizes;
}

constexpr std::array<std::string_view, 3> operation_names{
    "write", "read", "send"};  // as MeasurePlan::Operation counts

MeasurePlan plan_of(const Options& options) {
  MeasurePlan plan;
  plan.operation = options.operation == "write"  ? MeasurePlan::Operation::write
                   : options.operation == "read" ? MeasurePlan::Operation::read
                                                 : MeasurePlan::Operation::send;
  plan.latency = options.latency;
  plan.check = options.check;
  plan.queue_pairs = options.queue_pairs;
  plan.iterations = options.iterations;
  plan.depth = options.depth;
  plan.sizes = sizes_of(options.sizes);
  return plan;
}

TransportOptions transport_options(const Options& options, const MeasurePlan& plan) {
  TransportOptions result;
  result.path = transport::parse_path(options.path);
  result.level = parse_distance(options.level);
  if (options.gid_index >= 0) result.gid_index = static_cast<unsigned>(options.gid_index);
  if (!options.devices.empty() && options.devices != "double")
    for (const std::string& name : split(options.devices)) result.nics.push_back({name, {}, {}});
  result.queue_pairs = std::max(options.queue_pairs, plan.queue_pairs);
  result.check = plan.check;
  result.chunk = parse_bytes(options.chunk);
  result.depth = options.bounce_buffers;
  result.queue_depth = std::max(64U, options.depth + options.bounce_buffers + 8);
  result.timeout = options.timeout;
  // The double's clock advances whenever an end waits.
  result.limit = parse_duration(!options.limit.empty()        ? options.limit
                                : options.devices == "double" ? "1h"
                                                              : "60s");
  // A longer limit for operations, as on a slow emulated host, also applies to the set-up.
  if (!options.limit.empty() && result.limit.seconds > result.setup_limit.seconds)
    result.setup_limit = result.limit;
  return result;
}

/// One side: its verbs, memory and connection.
struct Side {
  std::shared_ptr<Verbs> verbs;
  std::shared_ptr<memory::DeviceMemory> memory;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Connection> connection;

  Status open(const Options& options, const MeasurePlan& plan, std::unique_ptr<ByteStream> stream,
              bool initiator) {
    try {
      transport = std::make_unique<Transport>(verbs, memory, transport_options(options, plan));
    } catch (const PathUnavailable& error) {
      return error.status;
    }
    connection = transport->open(std::move(stream), initiator);
    return connection->wait_ready();
  }
};

/// With --extra-copy: a copy that no path needs, which tests of the counts must find.
BeforeSending before_sending(const Options& options, const Side& side) {
  if (!options.extra_copy) return {};
  return [memory = side.memory](memory::DevicePointer from, Bytes size) {
    std::vector<std::byte> host(size.count);
    Status done = memory->copy_out(host.data(), from, size, {});
    if (done.ok()) done = memory->synchronize({});
    if (done.ok()) done = memory->copy_in(from, host.data(), size, {});
    return done.ok() ? memory->synchronize({}) : done;
  };
}

double mebibytes(Bandwidth bandwidth) { return bandwidth.bytes_per_second / (1U << 20U); }
Duration at_share(const std::vector<Duration>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

struct Spread {
  Duration mean;
  Duration deviation;
};
Spread spread_of(const std::vector<Duration>& values) {
  Spread spread;
  for (const Duration value : values)
    spread.mean += value * (1.0 / static_cast<double>(values.size()));
  double squares = 0;
  for (const Duration value : values) squares += std::pow(value.seconds - spread.mean.seconds, 2);
  spread.deviation = {std::sqrt(squares / static_cast<double>(values.size()))};
  return spread;
}

/// The columns of ib_write_bw and ib_write_lat.
std::string to_text(const std::vector<Measured>& results, bool latency) {
  std::vector<std::vector<std::string>> rows;
  if (latency) {
    rows.push_back({"#bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]",
                    "t_avg[usec]", "t_stdev[usec]", "99%[usec]", "99.9%[usec]"});
  } else {
    rows.push_back(
        {"#bytes", "#iterations", "BW peak[MB/sec]", "BW average[MB/sec]", "MsgRate[Mpps]"});
  }
  for (const Measured& result : results) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        fmt::format("{}", result.size.count), fmt::format("{}", result.iterations)});
    if (latency) {
      const auto& times = result.latencies;
      const Spread spread = spread_of(times);
      for (const Duration value : {times.front(), times.back(), at_share(times, 0.5), spread.mean,
                                   spread.deviation, at_share(times, 0.99), at_share(times, 0.999)})
        row.push_back(fmt::format("{:.2f}", value.us()));
    } else {
      const double rate = result.size.count > 0
                              ? result.average.bytes_per_second / result.size.as_double() * 1e-6
                              : 0;
      for (const double value : {mebibytes(result.peak), mebibytes(result.average)})
        row.push_back(fmt::format("{:.2f}", value));
      row.push_back(fmt::format("{:.6f}", rate));
    }
  }
  return table(rows);
}

json::Value to_json(const std::vector<Measured>& results, bool latency) {
  json::Array list;
  for (const Measured& result : results) {
    json::Value entry = json::Object{{"size_bytes", result.size.count},
                                     {"iterations", static_cast<std::int64_t>(result.iterations)}};
    if (latency) {
      const auto& times = result.latencies;
      entry.set("latency_min_us", rounded(times.front().us()));
      entry.set("latency_typical_us", rounded(at_share(times, 0.5).us()));
      entry.set("latency_mean_us", rounded(spread_of(times).mean.us()));
      entry.set("latency_p99_us", rounded(at_share(times, 0.99).us()));
      entry.set("latency_max_us", rounded(times.back().us()));
    } else {
      entry.set("bandwidth_peak_GBps", rounded(result.peak.gigabytes_per_second()));
      entry.set("bandwidth_GBps", rounded(result.average.gigabytes_per_second()));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

/// Bytes that this side moved, by what moved them.
json::Value moved_to_json(const Side& side) {
  const memory::MoverBytes memory = side.memory->moved();
  const PathBytes path = side.connection->bytes();
  return json::Object{{"copy_engine_out", memory.copy_engine_out.count},
                      {"copy_engine_in", memory.copy_engine_in.count},
                      {"copy_engine_within", memory.copy_engine_within.count},
                      {"cpu", memory.cpu.count},
                      {"rdma", path.rdma.count},
                      {"bounce_out", path.bounce_out.count},
                      {"bounce_in", path.bounce_in.count},
                      {"socket_out", path.socket_out.count},
                      {"socket_in", path.socket_in.count}};
}

/// Without results for the server, which only learns what it is to serve.
void print(const Options& options, const Side& side, const std::string& operation,
           const std::vector<Measured>& results) {
  const std::string path(to_string(side.connection->path()));
  if (options.format == "json") {
    write_file("-", json::dump(json::Object{
                        {"format", 1},
                        {"operation", operation},
                        {"path", path},
                        {"memory", side.memory->name()},
                        {"nics", side.transport->nics()},
                        {"queue_pairs", static_cast<std::int64_t>(options.queue_pairs)},
                        {"results", to_json(results, options.latency)},
                        {"moved_bytes", moved_to_json(side)}}));
    return;
  }
  std::string moved;
  const json::Value counters = moved_to_json(side);
  for (const auto& [name, value] : *counters.as<json::Object>())
    if (*value.as<std::int64_t>() > 0)
      moved += fmt::format("{}{} {}", moved.empty() ? "" : ", ", name,
                           to_string(Bytes{static_cast<std::uint64_t>(*value.as<std::int64_t>())}));
  write_file("-",
             fmt::format("{} by {}, {} over {}\n{}moved here: {}\n", options.operation, path,
                         side.memory->name(), side.transport->nics(),
                         to_text(results, options.latency), moved.empty() ? "nothing" : moved));
}

int failed(const Status& status) {
  std::fprintf(stderr, "gdr: %s\n", status.to_string().c_str());
  return 1;
}

int client(const Options& options, Side& side, std::unique_ptr<ByteStream> stream) {
  const MeasurePlan plan = plan_of(options);
  if (Status told = send_plan(*stream, plan, Duration{10}); !told.ok()) return failed(told);
  if (Status open = side.open(options, plan, std::move(stream), true); !open.ok())
    return failed(open);
  const auto results =
      run_client(*side.connection, *side.memory, plan, before_sending(options, side));
  if (!results.ok()) return failed(results.status());
  side.connection->close();
  print(options, side, options.operation, results.value());
  return 0;
}

int server(const Options& options, Side& side, std::unique_ptr<ByteStream> stream) {
  const auto plan = receive_plan(*stream, Duration{10});
  if (!plan.ok()) return failed(plan.status());
  if (Status open = side.open(options, plan.value(), std::move(stream), false); !open.ok())
    return failed(open);
  if (Status served =
          run_server(*side.connection, *side.memory, plan.value(), before_sending(options, side));
      !served.ok())
    return failed(served);
  side.connection->close();
  // People read the client's output; a program wants both sides' bytes.
  const auto operation = static_cast<std::size_t>(plan.value().operation);
  if (options.format == "json" && !options.loopback)
    print(options, side, std::string(operation_names.at(operation)), {});
  return 0;
}

/// Both ends in this process, one thread each.
int loopback(const Options& options) {
  Side a;
  Side b;
  a.memory = memory::make_memory(options.memory);
  b.memory = memory::make_memory(options.memory);
  if (options.devices == "double") {
    const auto fabric = make_double_fabric({});
    a.verbs = make_double(fabric, {"double0"});
    b.verbs = make_double(fabric, {"double1"});
  } else {
    a.verbs = b.verbs = make_ibverbs();
  }
  auto streams = stream_pair();
  int served = 0;
  std::string wrong;
  std::thread thread([&] {
    try {
      served = server(options, b, std::move(streams.second));
      if (served != 0) b.connection.reset();
    } catch (const InputError& error) {
      wrong = error.what();
      b.connection.reset();
    }
  });
  int code = 0;
  try {
    code = client(options, a, std::move(streams.first));
    // The other end would wait for one that has given up.
    if (code != 0) a.connection.reset();
  } catch (...) {
    streams.first.reset();
    thread.join();
    throw;
  }
  thread.join();
  if (!wrong.empty()) throw InputError(wrong);
  return std::max(code, served);
}

int run(const Options& options) {
  const SetUp by = options.set_up == "tcp" ? SetUp::tcp : SetUp::rdma_cm;
  (void)plan_of(options);
  (void)transport_options(options, plan_of(options));
  if (options.loopback && !options.host.empty())
    throw InputError("--loopback has both ends in this process: it takes no host");
  if (options.loopback) return loopback(options);
  if (options.devices == "double")
    throw InputError("--device double is in this process alone: it takes --loopback");
  Side side;
  side.memory = memory::make_memory(options.memory);
  side.verbs = make_ibverbs();
  if (!options.host.empty()) {
    auto stream =
        connect(by, options.host, options.port,
                parse_duration(options.connect_limit.empty() ? "30s" : options.connect_limit));
    if (stream.status().cause() == Cause::invalid) throw InputError(stream.status().text());
    return stream.ok() ? client(options, side, std::move(stream.value())) : failed(stream.status());
  }
  const auto listener = listen(by, options.port);
  auto stream = listener->accept(
      parse_duration(options.connect_limit.empty() ? "600s" : options.connect_limit));
  return stream.ok() ? server(options, side, std::move(stream.value())) : failed(stream.status());
}

void add_options(CLI::App& command, Options& options) {
  command.add_option("host", options.host,
                     "the server's name or address; without it, this is the server");
  command
      .add_option("--path", options.path,
                  "auto, gdr, staged or tcp; a named path is taken or is an error")
      ->capture_default_str();
  command
      .add_option("--memory", options.memory, "host, fake, bar:K (guests of gdr emulate) or cuda:K")
      ->capture_default_str();
  command.add_option("--operation", options.operation, "write, read or send")
      ->check(CLI::IsMember({"write", "read", "send"}))
      ->capture_default_str();
  command.add_option("--size", options.sizes, "sizes separated by commas, or all: 2B to 8MiB")
      ->capture_default_str();
  command.add_option("--iterations", options.iterations, "number for each size")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  command.add_option("--depth", options.depth, "operations at once, for bandwidth")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--queue-pairs", options.queue_pairs, "of each NIC")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option(
      "--device", options.devices,
      "RDMA devices separated by commas (default: the nearest); double: one in this process");
  command
      .add_option("--gid-index", options.gid_index,
                  "entry of the GID table (default: RoCEv2, by address)")
      ->check(CLI::Range(0, 255));
  command
      .add_option("--level", options.level,
                  "gdr up to this distance: LOC, PIX, PXB, PHB, SYS, or 0 to 4")
      ->capture_default_str();
  command.add_option("--chunk", options.chunk, "size of a bounce buffer")->capture_default_str();
  command
      .add_option("--bounce-buffers", options.bounce_buffers,
                  "of each queue pair, in each direction")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  command.add_option("--set-up", options.set_up, "tcp or rdma_cm")
      ->check(CLI::IsMember({"tcp", "rdma_cm"}))
      ->capture_default_str();
  command.add_option("--port", options.port, "port of the server")->capture_default_str();
  command.add_option(
      "--limit", options.limit,
      "of one operation (default: 60s; of the double's clock 1h); of the set-up, too, when longer "
      "than its 10s");
  command.add_option(
      "--connect-limit", options.connect_limit,
      "until the server listens (default: 30s); of a server: until its client comes (600s)");
  command
      .add_option("--timeout", options.timeout,
                  "of the NIC: it resends after 4.096us times 2 to this power")
      ->check(CLI::Range(1, 24))
      ->capture_default_str();
  command.add_flag("--latency", options.latency,
                   "ping-pong; prints half of the round trip (a read: all of it)");
  command.add_flag("--check", options.check, "compare CRC32C of the bytes at both ends");
  command.add_flag("--loopback", options.loopback, "both ends in this process");
  command.add_flag("--extra-copy", options.extra_copy,
                   "a fault, for tests of counts: what is written or sent goes through host memory "
                   "and back first");
  command.add_option("--format", options.format, "how to print")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

}  // namespace

void add_transfer(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("transfer", "Transfer between the GPUs of two hosts, for real");
  auto options = std::make_shared<Options>();
  add_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  gdr transfer --memory bar:0                        # on one host\n"
      "  gdr transfer --memory bar:0 10.0.0.1 --size all    # on the other\n"
      "  gdr transfer --loopback --device double --memory fake --path gdr --check\n"
      "\n"
      "The client decides what is transferred; each side has its own path and memory.\n"
      "With --format json the server prints what it moved, too.\n"
      "MB are 2^20 bytes, as in perftest.\n"
      "\n"
      "Exit codes: 0 fine, 1 the transfer failed, 2 wrong input.");
  command->callback([command, options, &context] {
    // An unset shell variable must not turn a client into a server.
    if (command->count("host") > 0 && options->host.empty())
      throw InputError("host is empty; leave it out for a server");
    context.exit_code = run(*options);
  });
}

}  // namespace gdr::cli
