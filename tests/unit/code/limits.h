#pragma once
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <string>

namespace metaldoctor::testing {

/// What one input may cost (docs/coding.md): 2 seconds of processor time, and memory for the file
/// plus 64 MB. Processor time, so that a busy machine fails no test.
class CostLimit {
 public:
  CostLimit(std::string what, std::size_t file_size)
      : what_(std::move(what)), file_size_(file_size), peak_(peak_kilobytes()), start_(seconds()) {}
  ~CostLimit() {
    EXPECT_LE(seconds() - start_, 2.0) << what_ << ": seconds";
    EXPECT_LE(peak_kilobytes() - peak_, static_cast<long>(file_size_ / 1024 + 64 * 1024))
        << what_ << ": kilobytes more than before";
  }
  CostLimit(const CostLimit&) = delete;
  CostLimit& operator=(const CostLimit&) = delete;

 private:
  static double seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  }
  /// The process's peak only grows, so a test that runs many inputs bounds their worst.
  static long peak_kilobytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  }

  std::string what_;
  std::size_t file_size_;
  long peak_;
  double start_;
};

}  // namespace metaldoctor::testing
