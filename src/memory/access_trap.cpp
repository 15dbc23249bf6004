#include "src/memory/access_trap.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>

namespace gdr::memory {
namespace {

struct Range {
  std::atomic<std::uint64_t> base{0};  // 0: free
  std::atomic<std::uint64_t> size{0};
  std::array<char, 32> backend{};
};

std::array<Range, 256> ranges;
std::mutex ranges_mutex;
int installed = 0;
struct sigaction previous;

/// What a signal handler may use: no allocation, no printf.
class Line {
 public:
  void text(std::string_view part) {
    const std::size_t count = std::min(part.size(), line_.size() - length_);
    std::memcpy(line_.data() + length_, part.data(), count);
    length_ += count;
  }
  void hex(std::uint64_t value) {
    std::array<char, 16> digits{};
    std::size_t first = digits.size();
    do {
      digits[--first] = "0123456789abcdef"[value & 15U];
      value >>= 4U;
    } while (value != 0);
    text("0x");
    text({digits.data() + first, digits.size() - first});
  }
  void print() const { (void)!write(STDERR_FILENO, line_.data(), length_); }

 private:
  std::array<char, 256> line_{};
  std::size_t length_ = 0;
};

void trapped(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  for (const Range& range : ranges) {
    const std::uint64_t base = range.base.load(std::memory_order_acquire);
    if (base == 0 || address < base || address - base >= range.size.load(std::memory_order_relaxed))
      continue;
    Line line;
    line.text("gdr: the CPU touched ");
    line.hex(address);
    line.text(", which is memory of the device ");
    line.text(range.backend.data());
    line.text(": use copy_in or copy_out of that backend\n");
    line.print();
    break;
  }
  // The access happens again, and the former handler sees it.
  sigaction(SIGSEGV, &previous, nullptr);
}

}  // namespace

AccessTrap::AccessTrap(const std::string& backend, std::uint64_t base, Bytes size) {
  const std::lock_guard lock(ranges_mutex);
  if (installed++ == 0) {
    struct sigaction action = {};
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &previous);
  }
  for (std::size_t i = 0; i < ranges.size() && place_ < 0; ++i) {
    Range& range = ranges[i];
    if (range.base.load(std::memory_order_relaxed) != 0) continue;
    backend.copy(range.backend.data(), range.backend.size() - 1);
    range.backend[std::min(backend.size(), range.backend.size() - 1)] = '\0';
    range.size.store(size.count, std::memory_order_relaxed);
    range.base.store(base, std::memory_order_release);
    place_ = static_cast<int>(i);
  }
}

AccessTrap::~AccessTrap() {
  const std::lock_guard lock(ranges_mutex);
  if (place_ >= 0)
    ranges[static_cast<std::size_t>(place_)].base.store(0, std::memory_order_release);
  if (--installed == 0) sigaction(SIGSEGV, &previous, nullptr);
}

}  // namespace gdr::memory
