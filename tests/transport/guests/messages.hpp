#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "src/transport/lanes/byte_stream.hpp"

/// Messages over a byte stream: eight bytes of length, then the message.
namespace gdr::transport {

/// Both call `meanwhile`, if given, while nothing can be done. peer_gone when the other side has
/// closed.
Status send_message(ByteStream& stream, const std::vector<std::byte>& bytes,
                    const std::function<void()>& meanwhile);
Result<std::vector<std::byte>> receive_message(ByteStream& stream, Duration limit,
                                               const std::function<void()>& meanwhile);

}  // namespace gdr::transport
