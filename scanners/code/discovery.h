#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "scanners/code/candidates.h"
#include "scanners/code/workbench.h"

namespace metaldoctor {

/// Finds the functions that ask, and follows private wrappers to their callers: every round traces
/// the functions that reach something of interest, and what they turn out to do for their callers
/// (summary.h) is of interest to the next round.
class Discovery {
 public:
  /// `on_trace` gets every part of every function that matters. A function that is traced again,
  /// because something it calls is known by then, comes again with `again`: its parts replace the
  /// earlier ones.
  using OnTrace = std::function<Result<void>(const FunctionTrace& trace, bool again)>;
  explicit Discovery(Workbench& bench) : bench_(bench) {}

  Result<void> run(const OnTrace& on_trace);

  /// Counts of the first scan.
  const Candidates& scanned() const { return scanned_; }
  /// Summarised functions that another function of the image was seen to call.
  const std::set<std::uint64_t>& called() const { return called_; }
  bool complete() const { return complete_; }

 private:
  Result<void> registrations();
  Result<void> registering_functions(const std::vector<std::uint64_t>& functions);
  Result<void> look(const std::vector<std::uint64_t>& functions, const OnTrace& on_trace);
  void learn(const FunctionTrace& trace);
  std::vector<std::uint64_t> callers_of_fresh() const;

  Workbench& bench_;
  Candidates scanned_;
  std::set<std::uint64_t> traced_, called_;
  std::vector<std::uint64_t> fresh_;                   ///< summarised in this round
  std::vector<std::uint64_t> registrars_;              ///< register selectors, and ask on the spot
  std::map<std::uint64_t, std::string_view> globals_;  ///< that hold registered selectors
  std::map<std::uint64_t, const Target*> pointers_;    ///< that hold functions of dlsym
  bool complete_ = true;
};

}  // namespace metaldoctor
