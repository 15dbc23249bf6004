#pragma once

#include <functional>

#include "tests/transport/pair.hpp"

namespace gdr::transport {

/// Both sides take `path`, with a limit short enough for tests of what goes wrong.
inline PairOptions pair_with_path(TransportPath path, Duration limit = Duration{5}) {
  PairOptions options;
  options.both([&](TransportOptions& side) {
    side.path = path;
    side.limit = limit;
    side.timeout = 10;  // 4.2 ms
  });
  return options;
}

/// A write of 4 MiB; `spoil` is called while it is in progress.
inline OperationResult spoiled_write(
    Pair& pair,
    const std::function<void(memory::DevicePointer from, memory::DevicePointer to)>& spoil) {
  const auto from = pair.a.allocate(4U << 20U);
  const auto to = pair.b.allocate(4U << 20U);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4U << 20U);
  const auto operation = pair.a.connection->write(from, range, Bytes{0}, Bytes{4U << 20U}, 1);
  for (int i = 0; i < 3; ++i) pair.step();
  spoil(from, to);
  return pair.finish(pair.a, operation);
}

}  // namespace gdr::transport
