#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "gdr/memory/backends.hpp"
#include "gdr/transport/transport.hpp"
#include "gdr/transport/verbs/double.hpp"

using namespace gdr;
using namespace gdr::transport;

/// Writes 1 MiB from one GPU's memory into another's. Two threads stand for the hosts, with
/// simulated NICs and fake GPUs. On real hosts use make_ibverbs() and make_cuda_memory(0), and get
/// the stream from listen() and connect().
struct Host {
  std::shared_ptr<memory::DeviceMemory> gpu;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Connection> connection;

  Host(const std::shared_ptr<DoubleFabric>& fabric, const std::string& nic,
       std::unique_ptr<ByteStream> stream, bool initiator)
      : gpu(memory::make_memory("fake")) {
    TransportOptions options;
    options.nics = {{nic, {}, Distance::pix}};
    transport = std::make_unique<Transport>(make_double(fabric, {nic}), gpu, options);
    connection = transport->open(std::move(stream), initiator);
  }
};

constexpr Bytes size{1U << 20U};

void fail_unless(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.to_string());
}

void receiver(Host& host) {
  fail_unless(host.connection->wait_ready());
  const memory::DevicePointer inbox = host.gpu->allocate(size).value();
  fail_unless(host.connection->share(1, inbox, size));
  const Arrival arrival = host.connection->wait_arrival().value();  // the bytes are already flushed
  std::vector<char> bytes(size.count);
  fail_unless(host.gpu->copy_out(bytes.data(), inbox, size, {}));
  fail_unless(host.gpu->synchronize({}));
  std::printf("%s of '%c' arrived, immediate %u\n", to_string(arrival.size).c_str(), bytes.back(),
              arrival.immediate);
}

int main() {
  try {
    const auto fabric = make_double_fabric({});
    auto [here, there] = stream_pair();
    Host a(fabric, "nic0", std::move(here), true);
    Host b(fabric, "nic1", std::move(there), false);
    std::thread thread(receiver, std::ref(b));
    fail_unless(a.connection->wait_ready());
    const memory::DevicePointer outbox = a.gpu->allocate(size).value();
    fail_unless(a.gpu->fill(outbox, 'x', size, {}));
    const RemoteRange inbox = a.connection->wait_shared(1).value();
    const OperationId write = a.connection->write(outbox, inbox, Bytes{0}, size, 7).value();
    fail_unless(a.connection->wait(write).status);
    thread.join();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transfer: %s\n", error.what());
    return 1;
  }
}
