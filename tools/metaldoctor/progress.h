#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace metaldoctor {

/// "audit: 12 of 340" on standard error, in place: only on a terminal, and only for work that takes
/// over a second. The line is gone when this is.
class ProgressLine {
 public:
  ProgressLine(std::string what, std::size_t total) : what_(std::move(what)), total_(total) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::size_t done);

 private:
  std::string what_;
  std::size_t total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

}  // namespace metaldoctor
