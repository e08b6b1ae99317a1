#include "tools/render/recommendation.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>

#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

using Verdict = PathState::Verdict;

struct VerdictText {
  Verdict verdict;
  std::string_view json;
  std::string_view heading;
  TextStyle::Ink ink;
};

/// In the order the text lists them.
constexpr std::array<VerdictText, 11> verdicts = {{
    {Verdict::opens, "opens", "opens with this profile", TextStyle::Ink::good},
    {Verdict::would_open, "would-open", "would open without what was refused",
     TextStyle::Ink::warn},
    {Verdict::harmful_open, "harmful-open", "harmful and already taken in this guest",
     TextStyle::Ink::bad},
    {Verdict::hazard, "hazard", "refused because of a hazard", TextStyle::Ink::bad},
    {Verdict::above_host, "above-host", "needs more than the host has", TextStyle::Ink::warn},
    {Verdict::not_unlockable, "not-unlockable", "not unlockable by answers", TextStyle::Ink::warn},
    {Verdict::undetermined, "undetermined", "undetermined", TextStyle::Ink::warn},
    {Verdict::stays_closed, "stays-closed", "kept closed: harmful in this guest",
     TextStyle::Ink::plain},
    {Verdict::same_on_host, "same-on-host", "closed on the host too", TextStyle::Ink::plain},
    {Verdict::already_open, "already-open", "already open", TextStyle::Ink::plain},
    {Verdict::not_wanted, "not-wanted", "not asked for", TextStyle::Ink::dim},
}};

constexpr std::string_view unproven =
    "Decided from tables, rules and logs. That Metal itself behaves with these answers is unproven "
    "until the program has run on a real guest.";

Json path_json(const PathState& state) {
  const auto* text = std::ranges::find(verdicts, state.verdict, &VerdictText::verdict);
  Json json = {{"id", state.path.id}, {"program", state.path.program}};
  json["predicate"] = state.path.predicate.print();
  json["guest"] = to_string(state.guest);
  json["host"] = to_string(state.host);
  json["profile"] = to_string(state.profile);
  json["wanted"] = state.wanted;
  json["verdict"] = text->json;
  json["because"] = state.because;
  json["opens"] = state.path.opens;
  json["effect"] = state.path.effect;
  json["kernels"] = state.path.kernels;
  json["log_lines"] = state.path.log_lines;
  json["evidence"] = to_string(state.path.evidence);
  json["sources"] = state.path.sources;
  return json;
}

Json proof_json(const SearchProof& proof) {
  Json json = {{"candidates", Json::array()}};
  for (const QueryKey& key : proof.candidates) json["candidates"].push_back(to_json(key));
  json["assignments_examined"] = proof.assignments_examined;
  json["assignments_rejected_coherence"] = proof.assignments_rejected_coherence;
  json["minimal_sets"] = proof.minimal_sets;
  json["drops"] = Json::array();
  for (const SearchProof::Drop& drop : proof.drops) {
    Json row = to_json(drop.key);
    row["closes"] = drop.closes;
    json["drops"].push_back(std::move(row));
  }
  return json;
}

class Writer {
 public:
  Writer(const Tables& tables, const Recommendation& r, TextStyle style)
      : tables_(tables), r_(r), style_(style) {}

  std::string text() {
    head();
    changes();
    paths();
    left_alone();
    proof();
    for (const Conflict& c : r_.conflicts) {
      line(0, "conflict ",
           fmt::format("{} needs {}, against {}", c.path, query_text(tables_, c.key), c.against));
    }
    for (const std::string& note : r_.notes) line(0, "note: ", note);
    line(0, "unproven: ", unproven);
    return std::move(out_);
  }

 private:
  void line(std::size_t indent, std::string_view label, std::string_view text) {
    if (text.empty()) return;
    out_ += fmt::format("{:{}}{}{}\n", "", indent, label, wrap(text, indent + label.size()));
  }

  void heading(TextStyle::Ink ink, std::string_view text, std::size_t count) {
    out_ += fmt::format("\n{} ({})\n", style_.paint(ink, text), count);
  }

  void head() {
    const OsKnowledge& os = r_.os;
    out_ += fmt::format("host     {}\n", r_.host != nullptr ? r_.host->name : "unknown");
    out_ += fmt::format("system   macOS {}{}\n", to_string(os.exact.value_or(os.assumed)),
                        os.exact ? "" : " (assumed: the input does not name it)");
  }

  void changes() {
    heading(TextStyle::Ink::bold, "answers to change", r_.profile.changes.size());
    line(2, "", r_.summary);
    for (const ProfileChange& change : r_.profile.changes) {
      out_ += fmt::format("  {} = {} [{}]\n", query_text(tables_, change.answer.key),
                          to_string(change.answer.value), to_string(change.evidence));
      line(6, "", change.reason);
    }
  }

  void paths() {
    for (const VerdictText& verdict : verdicts) {
      const auto count = std::ranges::count(r_.paths, verdict.verdict, &PathState::verdict);
      if (count == 0) continue;
      heading(verdict.ink, verdict.heading, static_cast<std::size_t>(count));
      for (const PathState& state : r_.paths) {
        if (state.verdict == verdict.verdict) path(state);
      }
    }
  }

  void path(const PathState& state) {
    out_ += fmt::format("  {}  [{}]\n", state.path.id, to_string(state.path.evidence));
    const bool full = style_.verbosity > 0;
    const bool opens = state.verdict == Verdict::opens;
    line(6, "because ", fmt::format("{}", fmt::join(state.because, "; ")));
    if (opens || full) {
      line(6, opens ? "opens " : "it is ", state.path.opens);
      line(6, "kernels ", fmt::format("{}", fmt::join(state.path.kernels, ", ")));
      line(6, "logs ", fmt::format("{}", fmt::join(state.path.log_lines, " | ")));
    }
    if (!full) return;
    line(6, "when ", state.path.predicate.print());
    out_ += fmt::format("      guest {}, host {}, with profile {}\n", to_string(state.guest),
                        to_string(state.host), to_string(state.profile));
    line(6, "effect ", state.path.effect);
    std::vector<std::string_view> sources;
    for (const std::string& key : state.path.sources) sources.push_back(tables_.source(key));
    line(6, "source ", fmt::format("{}", fmt::join(sources, "; ")));
  }

  void left_alone() {
    if (r_.profile.left_alone.empty()) return;
    heading(TextStyle::Ink::plain, "left alone", r_.profile.left_alone.size());
    for (const LeftAlone& alone : r_.profile.left_alone) {
      out_ += fmt::format("  {}: {} [{}]\n", query_text(tables_, alone.key), alone.why,
                          to_string(alone.evidence));
      line(6, "", alone.detail);
    }
  }

  void proof() {
    const SearchProof& proof = r_.proof;
    if (proof.candidates.empty()) return;
    out_ += fmt::format(
        "\nproof: {} answer(s) may be changed, {} assignment(s) examined, {} of them incoherent, "
        "{} smallest set(s)\n",
        proof.candidates.size(), proof.assignments_examined, proof.assignments_rejected_coherence,
        proof.minimal_sets);
    for (const SearchProof::Drop& drop : proof.drops) {
      line(2, "without ",
           fmt::format("{}: {}", query_text(tables_, drop.key), fmt::join(drop.closes, "; ")));
    }
    out_ += "\n";
  }

  const Tables& tables_;
  const Recommendation& r_;
  TextStyle style_;
  std::string out_;
};

}  // namespace

Json recommendation_json(const Recommendation& recommendation) {
  const Recommendation& r = recommendation;
  Json json = {{"schema", "metaldoctor.recommendation/1"}};
  json["host"] = r.host != nullptr ? Json(r.host->name) : Json(nullptr);
  json["profile"] = to_json(r.profile);
  json["paths"] = Json::array();
  for (const PathState& state : r.paths) json["paths"].push_back(path_json(state));
  json["proof"] = proof_json(r.proof);
  json["conflicts"] = Json::array();
  for (const Conflict& conflict : r.conflicts) {
    Json row = to_json(conflict.key);
    row["path"] = conflict.path;
    row["against"] = conflict.against;
    json["conflicts"].push_back(std::move(row));
  }
  json["refusals"] = Json::array();
  for (const Diagnostic& refusal : r.refusals) {
    json["refusals"].push_back(
        {{"code", refusal.code}, {"what", refusal.what}, {"hint", refusal.hint}});
  }
  json["summary"] = r.summary;
  json["notes"] = r.notes;
  json["unproven"] = {std::string(unproven)};
  return json;
}

std::string recommendation_text(const Tables& tables, const Recommendation& recommendation,
                                TextStyle style) {
  return Writer(tables, recommendation, style).text();
}

}  // namespace metaldoctor
