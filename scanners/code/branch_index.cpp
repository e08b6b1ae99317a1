#include "scanners/code/branch_index.h"

#include <algorithm>

#include "scanners/code/candidate_scan.h"
#include "scanners/macho/arm64_words.h"

namespace metaldoctor {

BranchIndex::BranchIndex(const Program& program) : program_(program) {
  std::uint64_t low = UINT64_MAX, high = 0;
  for (const Section& section : program.image().sections())
    if (is_plain_code(section)) {
      low = std::min(low, section.address);
      high = std::max(high, section.address + section.bytes.size());
    }
  if (low >= high) return;
  base_ = low;
  // No branch reaches farther than 2 GB; an image that is larger has no business here.
  size_ = std::min<std::uint64_t>(high - low, UINT32_MAX);
  if (program.image().is_object()) {  // what the linker will make of them
    for (const Relocation& relocation : program.relocations())
      if (!relocation.undefined) add(relocation.address, relocation.target);
    return;
  }
  branches_.reserve(size_ / 24);  // about one branch in six instructions
  for (const Section& section : program.image().sections()) {
    if (!is_plain_code(section)) continue;
    if (program.arch().kind == Arch::Kind::arm64)
      read_arm64(section);
    else
      read_x86(section);
  }
}

void BranchIndex::add(std::uint64_t from, std::uint64_t to) {
  from -= base_, to -= base_;
  if (from < size_ && to < size_)
    branches_.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)});
}

void BranchIndex::read_arm64(const Section& section) {
  for (std::uint64_t at = 0; at + 4 <= section.bytes.size(); at += 4) {
    const auto word = *read_at<std::uint32_t>(section.bytes, at);
    if ((word & 0x7c000000) != 0x14000000) continue;
    const std::uint64_t pc = section.address + at;
    add(pc, arm64::branch_target(word, pc));
  }
}

/// call and jmp with a 32-bit displacement, at every byte that could begin one.
void BranchIndex::read_x86(const Section& section) {
  constexpr std::uint8_t kCall = 0xe8;  // jmp is 0xe9
  for (std::uint64_t at = 0; at + 5 <= section.bytes.size(); ++at) {
    if ((section.bytes[at] & 0xfe) != kCall) continue;
    const auto displacement = *read_at<std::int32_t>(section.bytes, at + 1);
    const std::uint64_t pc = section.address + at;
    add(pc, pc + 5 + static_cast<std::uint64_t>(std::int64_t{displacement}));
  }
}

std::vector<std::uint64_t> BranchIndex::callers_of(
    const std::vector<std::uint64_t>& targets) const {
  AddressSet wanted(2);
  for (const std::uint64_t target : targets) wanted.add(target - base_);
  wanted.seal();
  std::vector<std::uint64_t> functions;
  std::pair<std::uint64_t, std::uint64_t> around{1, 0};
  for (const Branch& branch : branches_) {
    if (!wanted.has(branch.to)) continue;
    const std::uint64_t from = base_ + branch.from;
    if (from >= around.first && from < around.second) continue;
    around = program_.functions().around(program_.image(), from);
    if (around.second) functions.push_back(around.first);
  }
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  return functions;
}

}  // namespace metaldoctor
