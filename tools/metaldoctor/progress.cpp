#include "tools/metaldoctor/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace metaldoctor {

ProgressLine::~ProgressLine() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::show(std::size_t done) {
  const bool wanted = ::isatty(STDERR_FILENO) != 0 &&
                      std::chrono::steady_clock::now() - start_ > std::chrono::seconds(1);
  if (!wanted) return;
  fmt::print(stderr, "\r{}: {} of {}", what_, done, total_);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace metaldoctor
