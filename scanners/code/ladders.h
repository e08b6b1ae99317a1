#pragma once
#include <vector>

#include "scanners/code/trace.h"

namespace metaldoctor {

/// A chain of call events (indices into FunctionTrace::calls) that asks consecutive values: each
/// "no" goes straight on to the next, and the values go up or down by one.
struct LadderRun {
  std::vector<std::size_t> calls;
  std::int64_t first = 0, last = 0;
};

/// At least three steps; shorter runs are ordinary tests.
std::vector<LadderRun> find_ladders(const FunctionTrace& trace, const Expressions& expressions);

}  // namespace metaldoctor
