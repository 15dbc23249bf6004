#include "src/transport/connection/operation_table.hpp"

namespace gdr::transport {

std::uint64_t OperationTable::add(Operation&& operation) {
  if (2 * ++used_ > places_.size()) grow();
  do ++last_;
  while (places_[last_ & mask()] != nullptr);
  if (free_.empty()) free_.push_back(&entries_.emplace_back());
  Entry* entry = free_.back();
  free_.pop_back();
  entry->number = last_;
  entry->operation = std::move(operation);
  places_[last_ & mask()] = entry;
  ++under_way_;
  return last_;
}

/// Two numbers whose places differ also differ in a table of twice the size.
void OperationTable::grow() {
  std::vector<Entry*> before(2 * places_.size(), nullptr);
  before.swap(places_);
  for (Entry* entry : before)
    if (entry != nullptr) places_[entry->number & mask()] = entry;
}

void OperationTable::release(Entry& entry) {
  places_[entry.number & mask()] = nullptr;
  entry.result.reset();
  free_.push_back(&entry);
  --used_;
}

void OperationTable::finish(std::uint64_t number, const OperationResult& result) {
  if (find(number) == nullptr) return;
  Entry& entry = *places_[number & mask()];
  entry.operation.registered.reset();
  entry.operation.peer.keys.reset();
  entry.result = result;
  --under_way_;
}

void OperationTable::drop(std::uint64_t number) {
  if (find(number) == nullptr) return;
  finish(number, {});
  release(*places_[number & mask()]);
}

std::optional<OperationResult> OperationTable::take(std::uint64_t number) {
  Entry* entry = places_[number & mask()];
  if (entry == nullptr || entry->number != number || !entry->result) return std::nullopt;
  std::optional<OperationResult> result(std::move(*entry->result));
  release(*entry);
  return result;
}

void OperationTable::set_deadline_of_new(Duration deadline) {
  while (dated_ < last_)
    if (Operation* operation = find(++dated_)) operation->deadline = deadline;
}

std::uint64_t OperationTable::oldest() {
  if (under_way_ == 0) return 0;
  while (find(oldest_) == nullptr) ++oldest_;
  return oldest_;
}

}  // namespace gdr::transport
