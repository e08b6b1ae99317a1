#pragma once
#include <functional>
#include <set>
#include <vector>

#include "scanners/code/findings.h"
#include "scanners/code/ladders.h"
#include "scanners/code/trace.h"

namespace metaldoctor {

/// The gates of one function: branches and selects on answers, fields and globals that keep them,
/// answers that are returned. Branches of ladders are left out. Called functions of the image are
/// given to `name`, which returns what to call them.
std::vector<Gate> find_gates(const Program& program, const FunctionTrace& trace,
                             Expressions& expressions, const std::vector<LadderRun>& ladders,
                             const std::function<std::string(std::uint64_t)>& name);

}  // namespace metaldoctor
