#include "src/transport/connection/operation.hpp"

#include <fmt/format.h>

namespace gdr::transport {
namespace {

struct Describe {
  const std::string size;
  std::string operator()(const Write&) const { return "write of " + size; }
  std::string operator()(const Read&) const { return "read of " + size; }
  std::string operator()(const Send&) const { return "send of " + size; }
  std::string operator()(const Receive&) const { return "receive of up to " + size; }
  std::string operator()(const Atomic&) const { return "atomic"; }
  std::string operator()(const ServedRead&) const { return "the peer's read of " + size; }
};

}  // namespace

std::string describe(const Operation& operation) {
  return std::visit(Describe{to_string(operation.size)}, operation.kind);
}

}  // namespace gdr::transport
