#pragma once
// What a library to be injected does when it runs: its bytes, executed by the simulator in front of
// a simulated Metal. Requests and results are the documents of metaldoctor-sim, so that nothing
// here links the engine.
#include <functional>
#include <map>
#include <string>

#include "shim/verify.h"
#include "tables/document.h"

namespace metaldoctor {

/// A "sim-request" document in, a "sim-result" document out.
using Simulator = std::function<Result<Json>(const Json& request)>;

struct BehaviourOptions {
  const Profile* expected = nullptr;  ///< for libraries that hold no profile of their own
  Json capture = "paravirtual";       ///< what the simulated devices answer: a name or a document
  bool bare_metal = false;            ///< the capture is of a Mac's own GPU
  std::map<std::string, std::string> environment;  ///< of the simulated processes
  bool flips = false;                              ///< fill VerifyReport::flips
};

/// Adds the checks of behaviour to what verify_static reported, with evidence `executed`. An error
/// is a simulator that gives no result; what the library does wrong is a check that failed.
Result<void> verify_behaviour(const Tables& tables, Bytes file, const BehaviourOptions& options,
                              const Simulator& simulator, VerifyReport& report);

/// The same checks as not checked, for that reason.
void behaviour_not_checked(const std::string& reason, VerifyReport& report);
/// The simulator could not load or run it at all: the first check failed, the others were not made.
void behaviour_not_executable(const std::string& reason, VerifyReport& report);

}  // namespace metaldoctor
