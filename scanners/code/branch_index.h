#pragma once
#include <cstdint>
#include <vector>

#include "scanners/code/program.h"

namespace metaldoctor {

/// Every direct branch of the code, for finding callers again and again: a few bytes a branch
/// instead of a pass over the code a question.
class BranchIndex {
 public:
  explicit BranchIndex(const Program& program);
  /// Functions that hold a branch to one of `targets`; sorted, unique.
  std::vector<std::uint64_t> callers_of(const std::vector<std::uint64_t>& targets) const;

 private:
  struct Branch {
    std::uint32_t from, to;  ///< from base_
  };
  void add(std::uint64_t from, std::uint64_t to);
  void read_arm64(const Section& section);
  void read_x86(const Section& section);

  const Program& program_;
  std::uint64_t base_ = 0, size_ = 0;  ///< what spans the code
  std::vector<Branch> branches_;
};

}  // namespace metaldoctor
