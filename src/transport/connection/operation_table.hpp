#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "src/transport/connection/operation.hpp"
#include "src/transport/connection/results.hpp"

namespace gdr::transport {

/// The operations of a connection: those in progress, and results that have not been taken. An
/// operation is found by its number. Entries are reused without the allocator, since every message
/// needs one.
class OperationTable {
 public:
  /// Returns its number, which is larger than every one before.
  std::uint64_t add(Operation&& operation);
  /// Null when it is not in progress. The pointer stays valid until the operation is finished.
  [[nodiscard]] Operation* find(std::uint64_t number) {
    Entry* entry = places_[number & mask()];
    return entry != nullptr && entry->number == number && !entry->result ? &entry->operation
                                                                         : nullptr;
  }
  /// Keeps the result until it is taken.
  void finish(std::uint64_t number, const OperationResult& result);
  /// Ends an operation whose result no caller waits for.
  void drop(std::uint64_t number);
  /// nullopt: it is in progress, unknown, or was taken.
  std::optional<OperationResult> take(std::uint64_t number);
  [[nodiscard]] std::size_t under_way() const { return under_way_; }
  /// Gives every operation that was added since the last call this deadline: reading the clock for
  /// each message would cost as much as a lookup.
  void set_deadline_of_new(Duration deadline);
  /// The smallest number in progress; 0 when there is none.
  [[nodiscard]] std::uint64_t oldest();
  /// Calls `visit` with each operation in progress, in no particular order.
  template <typename Visitor>
  void each(Visitor visit) const {
    for (const Entry* entry : places_)
      if (entry != nullptr && !entry->result) visit(entry->operation);
  }

 private:
  struct Entry {
    std::uint64_t number = 0;
    Operation operation;
    std::optional<OperationResult> result;
  };
  [[nodiscard]] std::uint64_t mask() const { return places_.size() - 1; }
  void grow();
  void release(Entry& entry);

  // The last bits of a number give its place; a number whose place is taken is never used. Half of
  // the places stay free.
  std::vector<Entry*> places_ = std::vector<Entry*>(64, nullptr);
  std::deque<Entry> entries_;
  std::vector<Entry*> free_;
  std::size_t used_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t dated_ = 0;   // the largest number that has a deadline
  std::uint64_t oldest_ = 1;  // no smaller number is in progress
};

}  // namespace gdr::transport
