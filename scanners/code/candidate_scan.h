#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "scanners/code/candidates.h"

namespace metaldoctor {

/// A set of addresses with a range that a vector unit can test first.
class AddressSet {
 public:
  explicit AddressSet(unsigned shift) : shift_(shift) {}

  void add(std::uint64_t address) { addresses_.push_back(address); }
  void seal() {
    std::sort(addresses_.begin(), addresses_.end());
    if (addresses_.empty()) return;
    low_ = addresses_.front() >> shift_;
    size_ = (addresses_.back() >> shift_) - low_ + 1;
    for (const std::uint64_t address : addresses_) mark(address);
  }
  bool has(std::uint64_t address) const {
    const std::uint64_t bit = address >> shift_;
    return (marks_[bit / 64 % kMarks] >> (bit % 64) & 1) != 0 &&
           std::binary_search(addresses_.begin(), addresses_.end(), address);
  }
  bool empty() const { return addresses_.empty(); }
  /// In units of 1 << shift; tests modulo 2^32, which can only let too much through.
  std::uint32_t low() const { return static_cast<std::uint32_t>(low_); }
  std::uint32_t size() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(size_, UINT32_MAX));
  }

 private:
  static constexpr std::size_t kMarks = 1024;
  void mark(std::uint64_t address) {
    const std::uint64_t bit = address >> shift_;
    marks_[bit / 64 % kMarks] |= std::uint64_t{1} << (bit % 64);
  }

  /// One bit for each address modulo 65,536: most lookups end here.
  std::vector<std::uint64_t> marks_ = std::vector<std::uint64_t>(kMarks);
  unsigned shift_;
  std::uint64_t low_ = 0, size_ = 0;
  std::vector<std::uint64_t> addresses_;
};

/// Collects the functions of what a scan hits. Internal to scanners/code.
class CandidateSink {
 public:
  CandidateSink(const Program& program, const CandidateGoals& goals)
      : program_(program), goals_(goals) {}

  bool wants(const Target& target) const { return is_goal(target) || is_counted(target); }
  /// A branch to a stub at `pc`, or a use of a slot.
  void branch(std::uint64_t pc, const Target& target) {
    if (is_counted(target))
      ++out_.counted[target.selector->query];
    else if (is_goal(target))
      function_at(pc);
  }
  void slot(std::uint64_t pc, const Target& target) {
    if (wants(target)) function_at(pc);
  }
  const CandidateGoals& goals() const { return goals_; }
  void function_at(std::uint64_t pc);
  void add_words(std::size_t count) { out_.words += count; }
  Candidates take();

 private:
  bool is_goal(const Target& target) const;
  bool is_counted(const Target& target) const;

  const Program& program_;
  const CandidateGoals& goals_;
  Candidates out_;
  std::uint64_t function_begin_ = 1, function_end_ = 0;
};

void scan_arm64(const Program& program, CandidateSink& sink);
void scan_x86(const Program& program, CandidateSink& sink);
/// Whether a section holds code that is not made of stubs.
bool is_plain_code(const Section& section);

}  // namespace metaldoctor
