#pragma once
// What can be said of a library to be injected, ours or not, from its bytes. What it does when it
// runs is asked of the simulator; the tools add those results to the same report.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shim/emit.h"

namespace metaldoctor {

struct VerifyCheck {
  std::string id;  ///< stable: "imports", "signature" ...
  enum class State { passed, failed, not_applicable, not_checked } state = State::passed;
  std::string detail;                  ///< what was found; for a failure what was expected too
  Evidence evidence = Evidence::read;  ///< executed for the checks of the simulator
};
std::string_view to_string(VerifyCheck::State state);
struct VerifyReport;
/// Problems of several architectures as one text; what is the same on all of them is said once.
class ArchitectureProblems {
 public:
  void add(const std::string& arch, const std::string& problem);
  bool empty() const { return rows_.empty(); }
  std::vector<std::string> texts() const;  ///< "arm64, x86_64: not chained"

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> rows_;
};

/// What remains open after the checks of the file, or after those of its execution too.
void set_cannot_prove(VerifyReport& report, bool executed);

/// Metal's own questions (MTLDeviceFeatureQueries) whose answers the library changes.
struct MetalFlips {
  Profile::Callers callers = Profile::Callers::all;
  std::vector<std::string> gained, lost;  ///< "familySupportsSIMDReduction"
};

struct VerifyReport {
  std::string sha256;
  std::vector<EmittedSlice> slices;
  bool is_ours = false;      ///< it has our section: a template, or an emitted library
  bool is_template = false;  ///< not specialised: what it does hangs on the environment
  std::string profile_text;
  std::optional<InjectedProfile> profile;
  std::vector<VerifyCheck> checks;
  std::vector<MetalFlips> flips;          ///< only if they were asked for, and executed
  std::vector<std::string> cannot_prove;  ///< sentences for the end of every report

  enum class Verdict {
    passed,
    failed,
    incomplete
  };  ///< incomplete: nothing failed, but not
      ///< all ran, or the library is not ours
  Verdict verdict() const;
  bool passed() const { return verdict() == Verdict::passed; }
  const VerifyCheck* check(std::string_view id) const;
};

/// Static checks of a thin or universal library. With `expected`, what is embedded must be those
/// changes; a library that embeds none is held to them by verify_behaviour. An error is a file that
/// is no readable Mach-O; everything else is a check that failed.
Result<VerifyReport> verify_static(const Tables& tables, Bytes file, std::string_view name,
                                   const Profile* expected = nullptr);

}  // namespace metaldoctor
