#include "tools/render/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

using State = VerifyCheck::State;
using Ink = TextStyle::Ink;

constexpr std::string_view unproven =
    "That a Mac loads it and that Metal behaves with these answers: `metaldoctor verify` says what "
    "was checked without one.";
constexpr std::string_view experimental =
    "The arm64e slice was made without Apple's tools and no Mac has loaded it yet. From macOS 14.4 "
    "on dyld prefers it in arm64 processes too.";

std::string_view bound_text(shim::Bound bound) {
  return shim::kBoundNames[static_cast<std::size_t>(bound)];
}
std::string_view callers_text(Profile::Callers callers) {
  return shim::kCallersNames[static_cast<std::size_t>(callers)];
}
std::string_view scope_text(Profile::Scope scope) {
  return shim::kScopeNames[static_cast<std::size_t>(scope)];
}

Json injected_json(const InjectedProfile& profile) {
  Json json = {{"callers", callers_text(profile.callers)},
               {"scope", scope_text(profile.scope)},
               {"bound", bound_text(profile.bound)},
               {"observes_only", profile.observes_only()},
               {"changes", Json::array()}};
  for (const Answer& change : profile.changes) {
    Json row = to_json(change.key);
    row["answer"] = to_json(change.value);
    json["changes"].push_back(std::move(row));
  }
  return json;
}

Json slices_json(const std::vector<EmittedSlice>& slices) {
  Json json = Json::array();
  for (const EmittedSlice& slice : slices) {
    json.push_back({{"arch", slice.arch}, {"size", slice.size}, {"cdhash", slice.cdhash}});
  }
  return json;
}

bool has_arm64e(const std::vector<EmittedSlice>& slices) {
  return std::ranges::find(slices, "arm64e", &EmittedSlice::arch) != slices.end();
}

/// "label    text", wrapped below the text.
std::string row(std::string_view label, std::string_view text) {
  constexpr std::size_t column = 10;
  return fmt::format("{:<{}}{}\n", label, column, wrap(text, column));
}

std::string profile_text(const Tables& tables, const InjectedProfile& profile, TextStyle style) {
  std::string out = fmt::format("\n{} ({})\n", style.paint(Ink::bold, "answers it changes"),
                                profile.changes.size());
  for (const Answer& change : profile.changes) {
    out += fmt::format("  {} = {}\n", query_text(tables, change.key), to_string(change.value));
  }
  if (profile.observes_only()) out += "  none: it only keeps the journal that it is asked for\n";
  return out + fmt::format("  callers {}, scope {}, bound {}\n\n", callers_text(profile.callers),
                           scope_text(profile.scope), bound_text(profile.bound));
}

std::string slices_text(const std::vector<EmittedSlice>& slices) {
  std::string out;
  for (const EmittedSlice& slice : slices) {
    out += row(slice.arch, fmt::format("{} bytes, cdhash {}", slice.size,
                                       slice.cdhash.empty() ? "none" : slice.cdhash));
  }
  return out;
}

struct StateText {
  State state;
  std::string_view json, word;
  Ink ink;
};
constexpr std::array<StateText, 4> states = {{
    {State::passed, "passed", "ok", Ink::good},
    {State::failed, "failed", "FAILED", Ink::bad},
    {State::not_applicable, "not-applicable", "n/a", Ink::dim},
    {State::not_checked, "not-checked", "not checked", Ink::warn},
}};
const StateText& text_of(State state) {
  return *std::ranges::find(states, state, &StateText::state);
}

constexpr std::array<std::string_view, 3> verdicts = {"passed", "failed", "incomplete"};

std::string verdict_text(const VerifyReport& report, TextStyle style) {
  const auto count = [&](State state) {
    return std::ranges::count(report.checks, state, &VerifyCheck::state);
  };
  switch (report.verdict()) {
    case VerifyReport::Verdict::passed:
      return fmt::format("{}: {} checks\n", style.paint(Ink::good, "passed"), count(State::passed));
    case VerifyReport::Verdict::failed:
      return fmt::format("{}: {} failed, {} passed, {} not checked\n",
                         style.paint(Ink::bad, "FAILED"), count(State::failed),
                         count(State::passed), count(State::not_checked));
    case VerifyReport::Verdict::incomplete:
      break;
  }
  return fmt::format("{}: {} passed, {} not checked\n", style.paint(Ink::warn, "incomplete"),
                     count(State::passed), count(State::not_checked));
}

std::string check_text(const VerifyCheck& check, TextStyle style) {
  const StateText& text = text_of(check.state);
  constexpr std::size_t column = 31;
  std::string detail = check.detail;
  if (style.verbosity > 0) detail += fmt::format(" [{}]", to_string(check.evidence));
  return fmt::format("  {}{:{}}{:<17}{}\n", style.paint(text.ink, text.word), "",
                     12 - std::min<std::size_t>(12, text.word.size()), check.id,
                     wrap(detail, column));
}

/// What was left out for one reason is one line.
std::string checks_text(const VerifyReport& report, TextStyle style) {
  std::string out, left_out, reason;
  for (const VerifyCheck& check : report.checks) {
    if (check.state != State::not_checked || style.verbosity > 0) {
      out += check_text(check, style);
    } else {
      left_out += (left_out.empty() ? "" : ", ") + check.id;
      reason = check.detail;
    }
  }
  if (left_out.empty()) return out;
  return out + fmt::format("  {} {}\n", style.paint(Ink::warn, "not checked"),
                           wrap(fmt::format("{}: {}", left_out, reason), 14));
}

std::string flips_text(const VerifyReport& report, TextStyle style) {
  std::string out;
  for (const MetalFlips& flips : report.flips) {
    out += fmt::format("\n{} ({})\n",
                       style.paint(Ink::bold, fmt::format("Metal's own answers, callers {}",
                                                          callers_text(flips.callers))),
                       flips.gained.size() + flips.lost.size());
    for (const std::string& name : flips.gained) out += fmt::format("  no -> yes  {}\n", name);
    for (const std::string& name : flips.lost) out += fmt::format("  yes -> no  {}\n", name);
  }
  if (!out.empty()) {
    out +=
        "  (asked by Metal of its own device [executed]; the list is from an iOS 18 build, a "
        "macOS\n  build may differ)\n";
  }
  return out;
}

}  // namespace

Json emitted_json(const EmitResult& emitted, const std::string& path) {
  Json json = {{"schema", "metaldoctor.emitted/1"}, {"file", path}, {"sha256", emitted.sha256}};
  json["size"] = emitted.bytes.size();
  json["slices"] = slices_json(emitted.slices);
  json["profile"] = injected_json(emitted.profile);
  json["profile_text"] = emitted.profile_text;
  json["above_host"] = emitted.above_host;
  json["run"] = run_line(path);
  json["unproven"] = Json::array({unproven});
  if (has_arm64e(emitted.slices)) json["unproven"].push_back(experimental);
  return json;
}

std::string emitted_text(const Tables& tables, const EmitResult& emitted, const std::string& path,
                         TextStyle style) {
  std::string out = row("library", printable(path)) + row("sha256", emitted.sha256);
  out += slices_text(emitted.slices);
  out += profile_text(tables, emitted.profile, style);
  for (const std::string& above : emitted.above_host) {
    out += fmt::format("{} {}\n", style.paint(Ink::bad, "above the host:"), above);
  }
  out += fmt::format("run with  {}\n", printable(run_line(path)));
  out += fmt::format("unproven: {}\n", wrap(unproven, 10));
  if (has_arm64e(emitted.slices)) out += fmt::format("unproven: {}\n", wrap(experimental, 10));
  return out;
}

Json verification_json(const VerifyReport& report, const std::string& path) {
  Json json = {{"schema", "metaldoctor.verification/1"}, {"file", path}};
  json["sha256"] = report.sha256;
  json["slices"] = slices_json(report.slices);
  json["kind"] = report.is_template ? "template" : report.is_ours ? "emitted" : "other";
  json["profile"] = report.profile ? injected_json(*report.profile) : Json(nullptr);
  json["verdict"] = verdicts[static_cast<std::size_t>(report.verdict())];
  json["checks"] = Json::array();
  for (const VerifyCheck& check : report.checks) {
    json["checks"].push_back({{"id", check.id},
                              {"state", text_of(check.state).json},
                              {"detail", check.detail},
                              {"evidence", to_string(check.evidence)}});
  }
  json["metal_flips"] = Json::array();
  for (const MetalFlips& flips : report.flips) {
    json["metal_flips"].push_back({{"callers", callers_text(flips.callers)},
                                   {"gained", flips.gained},
                                   {"lost", flips.lost},
                                   {"evidence", to_string(Evidence::executed)}});
  }
  json["cannot_prove"] = report.cannot_prove;
  return json;
}

std::string verification_text(const Tables& tables, const VerifyReport& report,
                              const std::string& path, TextStyle style) {
  std::string out = row("library", printable(path)) + row("sha256", report.sha256);
  out += slices_text(report.slices);
  if (report.profile) {
    out += profile_text(tables, *report.profile, style);
  } else {
    out += "\n";
  }
  out += checks_text(report, style);
  out += flips_text(report, style);
  out += "\n" + verdict_text(report, style);
  out += "cannot be proved here:\n";
  for (const std::string& sentence : report.cannot_prove) {
    out += fmt::format("  - {}\n", wrap(sentence, 4));
  }
  return out;
}

}  // namespace metaldoctor
