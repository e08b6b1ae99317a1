#include "scanners/code/candidates.h"

#include "scanners/code/candidate_scan.h"

namespace metaldoctor {

bool CandidateSink::is_goal(const Target& target) const {
  if (target.function) {
    const FunctionRole role = target.function->role;
    if (goals_.registrations && role == FunctionRole::register_selector) return true;
    return goals_.queries && (role == FunctionRole::device || role == FunctionRole::device_list ||
                              role == FunctionRole::host_name);
  }
  if (!target.selector || !goals_.queries) return false;
  const SelectorRole role = target.selector->role;
  if (role == SelectorRole::compile || role == SelectorRole::os_version) return true;
  return role == SelectorRole::query && (goals_.ambiguous || !target.selector->ambiguous);
}

bool CandidateSink::is_counted(const Target& target) const {
  return goals_.queries && target.selector &&
         target.selector->role == SelectorRole::pipeline_getter;
}

void CandidateSink::function_at(std::uint64_t pc) {
  if (pc >= function_begin_ && pc < function_end_) return;  // it is in already
  std::tie(function_begin_, function_end_) = program_.functions().around(program_.image(), pc);
  if (function_end_) out_.functions.push_back(function_begin_);
}

Candidates CandidateSink::take() {
  auto& functions = out_.functions;
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  return std::move(out_);
}

bool is_plain_code(const Section& section) {
  return section.is_code() && section.name != "__stubs" && section.name != "__objc_stubs" &&
         section.name != "__auth_stubs" && section.name != "__stub_helper";
}

Candidates find_candidates(const Program& program, const CandidateGoals& goals) {
  CandidateSink sink(program, goals);
  if (program.arch().kind == Arch::Kind::arm64)
    scan_arm64(program, sink);
  else
    scan_x86(program, sink);
  for (const Relocation& relocation : program.relocations())
    if (const Target* target = program.symbol_target(relocation.symbol))
      sink.branch(relocation.address, *target);
    else if (const Target* slot = program.slot(relocation.target))
      sink.slot(relocation.address, *slot);
    else if (std::find(goals.places.begin(), goals.places.end(), relocation.target) !=
             goals.places.end())
      sink.function_at(relocation.address);
  return sink.take();
}

}  // namespace metaldoctor
