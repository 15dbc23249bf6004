#pragma once

#include <memory>
#include <string>

#include "src/transport/verbs/verbs.hpp"

namespace gdr::bench {

class InstantWire;  // instant_verbs.cpp
std::shared_ptr<InstantWire> make_instant_wire();

/// NICs that move bytes within ibv_post_send. Nothing is waited for, so what remains is the cost of
/// the code that uses them. For one thread; writes, reads and sends, no atomics; a frame without a
/// receive ends the program.
std::unique_ptr<transport::Verbs> make_instant_verbs(std::shared_ptr<InstantWire> wire,
                                                     const std::string& nic);

}  // namespace gdr::bench
