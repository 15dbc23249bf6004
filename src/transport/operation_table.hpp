#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "src/transport/operation.hpp"
#include "src/transport/transport.hpp"

namespace gdr::transport {

/// The operations of a connection: those under way, and results that nobody has taken. An operation
/// is found by its number, and its place used again, without the allocator: that happens with every
/// message.
class OperationTable {
 public:
  /// The number that it got: larger than every one before.
  std::uint64_t add(Operation&& operation);
  /// Null when it is not under way. Stays where it is until it is finished.
  [[nodiscard]] Operation* find(std::uint64_t number) {
    Entry* entry = places_[number & mask()];
    return entry != nullptr && entry->number == number && !entry->result ? &entry->operation
                                                                         : nullptr;
  }
  void finish(std::uint64_t number, const Finished& result);  ///< which waits to be taken
  void drop(std::uint64_t number);                            ///< finished, and nobody waits for it
  std::optional<Finished> take(
      std::uint64_t number);  ///< nothing: it is under way, unknown, or was taken
  [[nodiscard]] std::size_t under_way() const { return under_way_; }
  /// What was added since the last call has this deadline: reading the clock for each message would
  /// cost as much as a lookup.
  void date_new(Duration deadline);
  /// The one under way with the smallest number; 0: there is none.
  [[nodiscard]] std::uint64_t oldest();
  /// Calls `visit` with each one under way, in no order.
  template <typename Visitor>
  void each(Visitor visit) const {
    for (const Entry* entry : places_)
      if (entry != nullptr && !entry->result) visit(entry->operation);
  }

 private:
  struct Entry {
    std::uint64_t number = 0;
    Operation operation;
    std::optional<Finished> result;
  };
  [[nodiscard]] std::uint64_t mask() const { return places_.size() - 1; }
  void grow();
  void release(Entry& entry);

  // A number's place is given by its last bits; a number whose place is taken is never used. Half
  // of the places stay free.
  std::vector<Entry*> places_ = std::vector<Entry*>(64, nullptr);
  std::deque<Entry> entries_;
  std::vector<Entry*> free_;
  std::size_t used_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t dated_ = 0;   // the largest number that has a deadline
  std::uint64_t oldest_ = 1;  // no smaller number is under way
};

}  // namespace gdr::transport
