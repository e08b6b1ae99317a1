#include "shim/inject/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace metaldoctor {
namespace {

using Outcome = RunReport::Outcome;
constexpr int kAbort = 6;  ///< SIGABRT, which dyld raises for a library that it cannot load

const JournalProcess::Install* last_refusal(const JournalProcess& process) {
  const JournalProcess::Install* found = nullptr;
  for (const auto& install : process.installs) {
    if (install.state == "refused") found = &install;
  }
  return found;
}

void judge_process(RunReport& report, const JournalProcess& process) {
  if (process.state == "malformed") {
    report.outcome = Outcome::malformed;
    report.reason = "the library was loaded but could not read its configuration";
    return;
  }
  if (const auto* refusal = last_refusal(process)) {
    report.outcome = Outcome::refused_itself;
    report.reason = fmt::format("the library was loaded and changed nothing: {} {}: {}",
                                refusal->device_class, refusal->selector, refusal->reason);
    report.hints.push_back(
        "this macOS has other Metal classes than the ones that are known; please report it");
    return;
  }
  report.outcome = Outcome::no_device;
  report.reason = "the library was loaded, but the process started no Metal device";
  report.hints.push_back(
      "if a child process does the Metal work, give --scope tree; if the device is made late, "
      "let the program run longer");
}

void judge_absence(RunReport& report) {
  report.outcome = Outcome::not_loaded;
  report.reason = "the library was not loaded: the process kept no journal";
  const bool has_rules = report.preflight.has_value();
  const Preflight* preflight = has_rules ? &report.preflight->decision() : nullptr;
  if (report.end.signal == kAbort) {
    report.reason += ", and it was aborted, as dyld does when it cannot load an inserted library";
  }
  if (preflight && !preflight->works()) {
    report.hints.push_back(preflight->row->reason);
    if (!preflight->row->todo.empty()) report.hints.push_back(preflight->row->todo);
  } else if (preflight) {
    report.hints.push_back(
        "the file itself gives no reason; see what dyld says with DYLD_PRINT_LIBRARIES=1, and "
        "check "
        "that the library is not quarantined (xattr -l)");
  } else if (!report.preflight_problem.empty()) {
    report.hints.push_back(report.preflight_problem);
  }
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  constexpr std::array<std::string_view, 6> words{"took-hold", "no-device",  "refused-itself",
                                                  "malformed", "not-loaded", "no-journal"};
  return words[static_cast<std::size_t>(outcome)];
}

const JournalProcess* RunReport::main_process() const {
  const auto found = std::ranges::find(
      journal.processes, static_cast<std::uint64_t>(end.process_id), &JournalProcess::pid);
  return found == journal.processes.end() ? nullptr : &*found;
}

void judge(RunReport& report, bool tree) {
  report.reason.clear();
  report.hints.clear();
  const JournalProcess* main = report.main_process();
  const auto holds = [](const JournalProcess& each) { return each.took_hold(); };
  const bool child_holds = tree && std::ranges::any_of(report.journal.processes, holds);
  if (child_holds || (main && main->took_hold())) {
    report.outcome = Outcome::took_hold;
    return;
  }
  // A process that replaced itself by another program keeps its number and has one record more.
  if (main || (tree && !report.journal.processes.empty())) {
    return judge_process(report, main ? *main : report.journal.processes.front());
  }
  judge_absence(report);
}

}  // namespace metaldoctor
