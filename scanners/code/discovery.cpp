#include "scanners/code/discovery.h"

#include <algorithm>

namespace metaldoctor {
namespace {

constexpr int kMaxRounds = 6;
constexpr std::uint64_t kSmall = 256;  // bytes of a function that may hand a text on

bool has_query(const FunctionTrace& trace) {
  return std::any_of(trace.calls.begin(), trace.calls.end(), [](const CallEvent& event) {
    return event.target->selector && event.target->selector->role == SelectorRole::query;
  });
}

}  // namespace

/// Selectors that the program registers by their text: kept in globals (metal-cpp), or fetched
/// through functions of its own (Rust); and functions that it looks up by name.
Result<void> Discovery::registrations() {
  CandidateGoals goals;
  goals.queries = false;
  goals.registrations = true;
  goals.places = bench_.program().function_texts();
  const Candidates found = find_candidates(bench_.program(), goals);
  if (auto ok = registering_functions(found.functions); !ok) return ok;
  for (int round = 0; round < kMaxRounds && !fresh_.empty(); ++round) {
    std::vector<std::uint64_t> small;
    for (const std::uint64_t function : callers_of_fresh()) {
      const auto [begin, end] =
          bench_.program().functions().around(bench_.program().image(), function);
      if (end - begin <= kSmall) small.push_back(function);
    }
    fresh_.clear();
    if (auto ok = registering_functions(small); !ok) return ok;
  }
  fresh_.clear();
  bench_.program().add_registered(globals_);
  bench_.program().add_looked_up(pointers_);
  return {};
}

Result<void> Discovery::registering_functions(const std::vector<std::uint64_t>& functions) {
  for (const std::uint64_t function : functions) {
    const auto trace = bench_.trace(function);
    if (!trace) return tl::unexpected(trace.error());
    for (const auto& [global, target] : trace->kept_targets) {
      if (target->imported)
        pointers_.emplace(global, target);
      else
        globals_.emplace(global, target->name);
    }
    if (has_query(*trace)) registrars_.push_back(function);
    Summary summary = summarise(*trace);
    if (!summary.registers || bench_.program().summary(function)) continue;
    bench_.program().set_summary(function, std::move(summary));
    fresh_.push_back(function);
  }
  return {};
}

void Discovery::learn(const FunctionTrace& trace) {
  for (const CallEvent& event : trace.calls)
    if (event.callee) called_.insert(event.callee);
  Summary summary = summarise(trace);
  const Summary* known = bench_.program().summary(trace.function);
  if (trace.begin != trace.function || summary.empty() || (known && *known == summary)) return;
  if (known && known->registers) return;
  bench_.program().set_summary(trace.function, std::move(summary));
  fresh_.push_back(trace.function);
}

Result<void> Discovery::look(const std::vector<std::uint64_t>& functions, const OnTrace& on_trace) {
  for (const std::uint64_t function : functions) {
    const auto [begin, end] =
        bench_.program().functions().around(bench_.program().image(), function);
    bool again = !traced_.insert(begin).second;
    for (std::uint64_t part = begin; part < end; part += kMaxFunctionBytes) {
      const auto trace = bench_.trace(begin, nullptr, part);
      if (!trace) return tl::unexpected(trace.error());
      learn(*trace);
      if (auto ok = on_trace(*trace, again); !ok) return ok;
      again = false;
    }
  }
  return {};
}

std::vector<std::uint64_t> Discovery::callers_of_fresh() const {
  return bench_.branches().callers_of(fresh_);
}

Result<void> Discovery::run(const OnTrace& on_trace) {
  if (auto ok = registrations(); !ok) return ok;
  CandidateGoals goals;
  goals.places = bench_.program().function_texts();
  if (bench_.program().registers_selectors()) {
    const auto& texts = bench_.program().selector_texts();
    goals.places.insert(goals.places.end(), texts.begin(), texts.end());
  }
  scanned_ = find_candidates(bench_.program(), goals);
  std::vector<std::uint64_t> functions = scanned_.functions;
  functions.insert(functions.end(), registrars_.begin(), registrars_.end());
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  for (int round = 0; round < kMaxRounds; ++round) {
    fresh_.clear();
    if (auto ok = look(functions, on_trace); !ok) return ok;
    if (fresh_.empty()) return {};
    functions = callers_of_fresh();
  }
  complete_ = functions.empty();
  return {};
}

}  // namespace metaldoctor
