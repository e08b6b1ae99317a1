#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"
#include "shim/profile.h"
#include "tables/tables.h"

namespace metaldoctor {

/// A code path whose state hangs on answers: from an app rule or from a gate that audit found.
struct Path {
  std::string id;       ///< "ggml-metal@G8/has_simdgroup_mm"
  std::string program;  ///< app id, or the image's name
  Predicate predicate;
  Rule::Side side = Rule::Side::gain;
  std::string opens;
  std::string effect;
  std::vector<std::string> kernels;
  std::vector<std::string> log_lines;
  std::vector<std::string> sends;  ///< selectors on the opened side (from a gate)
  std::vector<std::string> gates;  ///< ids of the gates of the audited image that it is made of
  Evidence evidence = Evidence::unknown;
  std::vector<std::string> sources;
};

/// The paths of one release range of a program.
std::vector<Path> paths_of(const App& app, const AppRange& range);
/// "ggml-metal", "llama.cpp@b10167", "ggml-metal@G8"; without a range the newest is taken.
Result<std::pair<const App*, const AppRange*>> find_app(const Tables& tables,
                                                        std::string_view spec);

struct RecommendOptions {
  DiagnoseOptions diagnose;
  std::vector<std::string> want;  ///< path ids, rule ids or kernel names; empty = the default
  std::vector<std::string> accepted_hazards;               ///< hazard ids, or harmful path ids
  std::vector<Answer> set;                                 ///< answers the user insists on
  std::vector<std::pair<std::string, Value>> environment;  ///< env('X') of the guest's program
  Profile::Callers callers = Profile::Callers::all;
  Profile::Scope scope = Profile::Scope::process;
};

struct PathState {
  Path path;
  Truth guest = Truth::unknown;    ///< under the guest's answers
  Truth host = Truth::unknown;     ///< host's answers, guest's driver facts, OS, environment, name
  Truth profile = Truth::unknown;  ///< guest + profile
  bool wanted = false;
  enum class Verdict {
    opens,       ///< wanted, closed in the guest, open with the profile
    would_open,  ///< the same, but for what was refused
    already_open,
    same_on_host,    ///< closed on the host too: nothing to gain
    not_unlockable,  ///< needs a driver fact, name, OS or environment that the guest lacks
    hazard,          ///< could be opened, but only through an answer that a hazard forbids
    above_host,      ///< could be opened, but only through an answer the host does not give
    stays_closed,    ///< a harm path, kept closed
    harmful_open,    ///< a harm path that this guest takes already
    undetermined,    ///< hangs on something unknown
    not_wanted,      ///< neutral, not asked for with --want, or ruled out with --set
  } verdict = Verdict::undetermined;
  std::vector<std::string> because;  ///< the atoms, hazards or unknowns that decide
};

/// What the exhaustive search looked at; it is the proof that the profile is smallest.
struct SearchProof {
  std::vector<QueryKey> candidates;  ///< answers that may be changed
  std::uint64_t assignments_examined = 0;
  std::uint64_t assignments_rejected_coherence = 0;
  std::size_t minimal_sets = 0;  ///< how many sets of the smallest size satisfy
  struct Drop {
    QueryKey key;
    std::vector<std::string> closes;  ///< path ids, or "coherence: 1007 includes 1006"
  };
  std::vector<Drop> drops;  ///< what is lost when one entry is left out
};

struct Conflict {
  std::string path;     ///< wanted by this path
  QueryKey key;         ///< needs this answer
  std::string against;  ///< "moltenvk: hazard apple6-residency-in-guest"
};

struct Recommendation {
  Profile profile;
  std::vector<PathState> paths;
  SearchProof proof;
  std::vector<Conflict> conflicts;
  const Chip* host = nullptr;
  OsKnowledge os;
  std::string summary;               ///< one sentence: what the profile opens, or why nothing
  std::vector<std::string> notes;    ///< assumptions taken
  std::vector<Diagnostic> refusals;  ///< Fault::refused; any of them means exit status 4
};

/// Chooses the smallest set of changed answers that opens the wanted paths. Errors: usage (no such
/// path, hazard or query; a setting that no profile can hold). What is refused (host unknown, --set
/// above the host, a hazard, programs in conflict) is in `refusals`, beside whatever could still be
/// worked out: the profile is empty then, while the verdicts and the proof describe what would be
/// chosen without what was refused.
Result<Recommendation> recommend(const Tables& tables, const Capture& guest,
                                 const std::vector<Path>& paths, const RecommendOptions& options);

}  // namespace metaldoctor
