#include "src/cli/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace gdr::cli {

Progress::Progress(std::string what, std::size_t total, std::size_t every)
    : what_(std::move(what)), total_(total), every_(every), shown_(isatty(STDERR_FILENO) != 0) {
  if (every_ == 1) say();  // steps are long: report from the start
}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::step() {
  if (++done_ % every_ == 0) say();
}

void Progress::say() const {
  if (shown_) std::fprintf(stderr, "\r%s: %zu of %zu", what_.c_str(), done_, total_);
}

}  // namespace gdr::cli
