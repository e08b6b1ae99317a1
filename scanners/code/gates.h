#pragma once
#include <functional>
#include <set>
#include <vector>

#include "scanners/code/findings.h"
#include "scanners/code/ladders.h"
#include "scanners/code/trace.h"

namespace metaldoctor {

/// A gate, and the expression behind its text.
struct FoundGate {
  Gate gate;
  ExprId expr = kNoExpr;
};
struct FoundGates {
  std::vector<FoundGate> gates;
  bool cut = false;  ///< there are more than are listed
};

/// The gates of one function: branches and selects on answers, fields and globals that keep them,
/// answers that are returned. Branches of ladders are left out. Called functions of the image are
/// given to `name`, which returns what to call them.
FoundGates find_gates(const Program& program, const FunctionTrace& trace, Expressions& expressions,
                      const std::vector<LadderRun>& ladders,
                      const std::function<std::string(std::uint64_t)>& name);

}  // namespace metaldoctor
