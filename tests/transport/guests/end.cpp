// A connection in this process or in the other.
#include "tests/transport/end.hpp"

#include "tests/transport/guests/agent.hpp"

namespace gdr::transport {

EndConnection::~EndConnection() {
  if (agent_ == nullptr) return;
  try {
    (void)agent_->ask<bool>(Request::forget, number_);
  } catch (const InputError&) {
    // It was killed.
  }
}

std::optional<Status> EndConnection::ready() {
  return here_ ? here_->ready() : agent_->ask<std::optional<Status>>(Request::ready, number_);
}
Status EndConnection::status() {
  return here_ ? here_->status() : agent_->ask<Status>(Request::status, number_);
}
TransportPath EndConnection::path() {
  return here_ ? here_->path() : agent_->ask<TransportPath>(Request::path, number_);
}
PathBytes EndConnection::bytes() {
  return here_ ? here_->bytes() : agent_->ask<PathBytes>(Request::bytes, number_);
}
Status EndConnection::share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size) {
  return here_ ? here_->share(tag, pointer, size)
               : agent_->ask<Status>(Request::share, number_, tag, pointer, size);
}
Status EndConnection::unshare(std::uint64_t tag) {
  return here_ ? here_->unshare(tag) : agent_->ask<Status>(Request::unshare, number_, tag);
}
std::optional<RemoteRange> EndConnection::shared(std::uint64_t tag) {
  return here_ ? here_->shared(tag)
               : agent_->ask<std::optional<RemoteRange>>(Request::shared, number_, tag);
}
Result<OperationId> EndConnection::write(memory::DevicePointer from, const RemoteRange& to,
                                         Bytes offset, Bytes size,
                                         std::optional<std::uint32_t> immediate) {
  return here_ ? here_->write(from, to, offset, size, immediate)
               : agent_->ask<Result<OperationId>>(Request::write, number_, from, to, offset, size,
                                                  immediate);
}
Result<OperationId> EndConnection::read(memory::DevicePointer to, const RemoteRange& from,
                                        Bytes offset, Bytes size) {
  return here_ ? here_->read(to, from, offset, size)
               : agent_->ask<Result<OperationId>>(Request::read, number_, to, from, offset, size);
}
Result<OperationId> EndConnection::send(memory::DevicePointer from, Bytes size) {
  return here_ ? here_->send(from, size)
               : agent_->ask<Result<OperationId>>(Request::send, number_, from, size);
}
Result<OperationId> EndConnection::receive(memory::DevicePointer to, Bytes room) {
  return here_ ? here_->receive(to, room)
               : agent_->ask<Result<OperationId>>(Request::receive, number_, to, room);
}
Result<OperationId> EndConnection::fetch_add(const RemoteRange& at, Bytes offset,
                                             std::uint64_t operand) {
  return here_ ? here_->fetch_add(at, offset, operand)
               : agent_->ask<Result<OperationId>>(Request::fetch_add, number_, at, offset, operand);
}
Result<OperationId> EndConnection::compare_swap(const RemoteRange& at, Bytes offset,
                                                std::uint64_t expected, std::uint64_t desired) {
  return here_ ? here_->compare_swap(at, offset, expected, desired)
               : agent_->ask<Result<OperationId>>(Request::compare_swap, number_, at, offset,
                                                  expected, desired);
}
std::optional<OperationResult> EndConnection::test(OperationId operation) {
  return here_ ? here_->test(operation)
               : agent_->ask<std::optional<OperationResult>>(Request::test, number_, operation);
}
std::optional<Arrival> EndConnection::arrival() {
  return here_ ? here_->arrival() : agent_->ask<std::optional<Arrival>>(Request::arrival, number_);
}
void EndConnection::close() {
  if (here_) return here_->close();
  (void)agent_->ask<bool>(Request::close, number_);
}

}  // namespace gdr::transport
