#include "tools/metaldoctor/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace metaldoctor {

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(std::size_t done) {
  const bool wanted = ::isatty(STDERR_FILENO) != 0 &&
                      std::chrono::steady_clock::now() - start_ > std::chrono::seconds(1);
  if (!wanted) return;
  std::fprintf(stderr, "\r%s: %zu of %zu", what_.c_str(), done, total_);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace metaldoctor
