#pragma once
// The checks of verify_behaviour, shared by the files that make them.
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/macho/image.h"
#include "shim/behaviour.h"
#include "shim/behaviour_request.h"
#include "shim/behaviour_trace.h"

namespace metaldoctor::behaviour {

using Environment = std::map<std::string, std::string>;

/// The one method that a library of this kind may replace in a base class, and where.
inline constexpr std::string_view kMoment = "initGPUFamilySupport", kBase = "_MTLDevice";
inline constexpr std::string_view kJournal = "/verified/journal";
/// One answer of a stock guest lowered: what a template is tried with.
inline constexpr std::string_view kSample = "mdp1;all;process;none;1:1001=0;.";

enum class Row : std::size_t {
  runs,
  answers,
  other_device,
  wrapped_device,
  moments,
  methods,
  calls,
  output,
  writes,
  environment,
  configuration,
  malformed,
  other_system,
  twice
};
inline constexpr std::size_t kRowCount = 14;

/// What happened in one row, over all architectures.
struct Finding {
  ArchitectureProblems problems;
  std::vector<std::string> notes;
  std::string not_applicable;  ///< why, if so
};

/// One library; the members named after situations simulate them on one architecture.
class Behaviour {
 public:
  Behaviour(const Tables& tables, Bytes file, const BehaviourOptions& options,
            const Simulator& simulator, VerifyReport& report)
      : tables_(tables), file_(file), options_(options), simulator_(simulator), report_(report) {}

  Result<void> run();

 private:
  using Traces = Result<std::vector<BehaviourTrace>>;

  Result<void> prepare();
  Result<void> architecture(const Slice& slice);
  Result<void> start();
  Result<void> wrappers();
  Result<void> moments();
  Result<void> malformed();
  Result<void> other_system();
  Result<void> system(const Json& change, std::string_view name, std::string_view selector);
  Result<void> twice(const Image& image);
  Result<void> flips();

  void judge_start(const std::vector<BehaviourTrace>& traces);
  void judge_answers(const BehaviourTrace& plain);
  void judge_methods(const BehaviourTrace& plain);
  void judge_effects(const BehaviourTrace& trace, const SimulatedRun& run);
  void judge_journal(const BehaviourTrace& trace);
  /// `consequences`: of the first device, whose answers that Metal derives from changed ones may be
  /// changed as well.
  void expect(Row row, std::string_view situation, const AnswerTable& wanted,
              const BehaviourTrace& trace, bool consequences = false);
  bool is_consequence(const QueryKey& key) const;

  SimulatedProcess process(std::vector<std::string> steps) const;
  Traces simulate(const SimulatedProcess& process, std::string_view situation);
  Environment plus(std::string_view name, std::string_view value) const;
  Finding& row(Row which) { return findings_[static_cast<std::size_t>(which)]; }
  void problem(Row which, const std::string& text) { row(which).problems.add(arch_, text); }
  void note(Row which, std::string text);
  bool ours() const { return report_.is_ours; }

  const Tables& tables_;
  Bytes file_;
  const BehaviourOptions& options_;
  const Simulator& simulator_;
  VerifyReport& report_;
  std::array<Finding, kRowCount> findings_;
  std::optional<InjectedProfile> wanted_;  ///< none: nobody says what it should change
  Environment environment_;
  std::vector<QueryKey> more_questions_;
  // Of the architecture at hand.
  std::string arch_;
  std::vector<std::uint8_t> image_;
  std::set<std::string> imports_;
  AnswerTable stock_, plain_;
  std::string changed_selector_;
};

}  // namespace metaldoctor::behaviour
