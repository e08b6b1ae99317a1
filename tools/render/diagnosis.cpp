#include "tools/render/diagnosis.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>

namespace metaldoctor {
namespace {

using Kind = Comparison::Kind;

struct KindText {
  Kind kind;
  std::string_view json;
  std::string_view heading;
  int verbosity;  ///< shown from this many -v on
  TextStyle::Ink ink;
};

constexpr std::array<KindText, 4> kinds = {{
    {Kind::under_report, "under-report", "under-reported", 0, TextStyle::Ink::bad},
    {Kind::over_claim, "over-claim", "over-claimed", 0, TextStyle::Ink::warn},
    {Kind::unknown, "unknown", "unknown", 1, TextStyle::Ink::dim},
    {Kind::agrees, "agrees", "agree with the host", 2, TextStyle::Ink::good},
}};

const KindText& kind_text(Kind kind) {
  return *std::ranges::find(kinds, kind, &KindText::kind);
}

Json os_json(const OsKnowledge& os) {
  Json json = {{"exact", nullptr}, {"at_least", nullptr}, {"assumed", to_string(os.assumed)}};
  if (os.exact) json["exact"] = to_string(*os.exact);
  if (os.at_least) json["at_least"] = to_string(*os.at_least);
  return json;
}

Json comparison_json(const Comparison& c) {
  Json json = to_json(c.key);
  json["kind"] = kind_text(c.kind).json;
  json["guest"] = to_json(c.guest);
  json["guest_evidence"] = to_string(c.guest_evidence);
  json["expected"] = to_json(c.expected);
  json["expected_evidence"] = to_string(c.expected_evidence);
  json["evidence"] = to_string(c.evidence);
  json["reason"] = c.reason;
  json["locks"] = c.locks;
  json["hazards"] = Json::array();
  for (const ComparisonHazard& hazard : c.hazards) {
    json["hazards"].push_back({{"id", hazard.id}, {"programs", hazard.programs}});
  }
  json["sources"] = c.sources;
  return json;
}

std::string os_text(const OsKnowledge& os) {
  if (os.exact) return "macOS " + to_string(*os.exact);
  const std::string bound =
      os.at_least ? fmt::format(", at least {}", to_string(*os.at_least)) : "";
  return fmt::format("macOS not named{} ({} assumed)", bound, to_string(os.assumed));
}

/// The lines below one comparison: what it locks and what unlocking it risks.
void append_details(std::string& out, const Tables& tables, const Comparison& c, int verbosity) {
  auto line = [&](std::string_view label, std::string_view text) {
    if (!text.empty()) out += fmt::format("      {}{}\n", label, wrap(text, 6 + label.size()));
  };
  if (verbosity == 0 && !c.locks.empty()) {
    line("locks ", fmt::format("{} feature(s), listed by -v", c.locks.size()));
  }
  if (verbosity > 0) {
    std::vector<std::string_view> names;
    for (const std::string& id : c.locks) {
      const Feature* feature = tables.feature(id);
      names.push_back(feature != nullptr ? std::string_view(feature->name) : std::string_view(id));
    }
    line("locks ", fmt::format("{}", fmt::join(names, "; ")));
  }
  for (const ComparisonHazard& about : c.hazards) {
    std::string text = about.id;
    if (!about.programs.empty()) text += fmt::format(" (only {})", fmt::join(about.programs, ", "));
    const Hazard* hazard = tables.hazard(about.id);
    if (verbosity > 0 && hazard != nullptr) {
      text += fmt::format(" [{}]: {}", to_string(hazard->provenance.evidence), hazard->effect);
    }
    line("hazard ", text);
  }
  if (verbosity > 0) {
    line("because ", c.reason);
    std::vector<std::string_view> sources;
    for (const std::string& key : c.sources) sources.push_back(tables.source(key));
    line("source ", fmt::format("{}", fmt::join(sources, "; ")));
  }
}

void append_comparisons(std::string& out, const Tables& tables, const Diagnosis& diagnosis,
                        const KindText& kind, const TextStyle& style) {
  std::vector<const Comparison*> rows;
  std::size_t width = 0;
  for (const Comparison& c : diagnosis.comparisons) {
    if (c.kind != kind.kind) continue;
    rows.push_back(&c);
    width = std::max(width, query_text(tables, c.key).size());
  }
  if (rows.empty()) return;
  out += fmt::format("\n{} ({})\n", style.paint(kind.ink, kind.heading), rows.size());
  for (const Comparison* c : rows) {
    out += fmt::format("  {:<{}}  guest {} [{}]  host {} [{}]\n", query_text(tables, c->key), width,
                       to_string(c->guest), to_string(c->guest_evidence), to_string(c->expected),
                       to_string(c->expected_evidence));
    append_details(out, tables, *c, style.verbosity);
  }
}

void append_codes(std::string& out, const Tables& tables, const Diagnosis& diagnosis,
                  const TextStyle& style) {
  for (const DiagnosisCode& code : diagnosis.codes) {
    out += fmt::format("  {} [{}]", style.paint(TextStyle::Ink::bold, code.code),
                       to_string(code.evidence));
    if (!code.detail.empty()) out += "  " + wrap(code.detail, 6, code.code.size() + 16);
    out += "\n";
    const Verdict* verdict = tables.verdict(code.code);
    if (verdict == nullptr || style.verbosity == 0) continue;
    out += fmt::format("      {}\n", wrap(verdict->meaning, 6));
    if (!verdict->advice.empty()) out += fmt::format("      {}\n", wrap(verdict->advice, 6));
  }
}

}  // namespace

Json diagnosis_json(const Capture& capture, const Diagnosis& diagnosis) {
  Json json = {{"schema", "metaldoctor.diagnosis/1"}};
  json["device"] = {{"name", capture.name}, {"architecture", capture.architecture}};
  json["host"] = {{"chip", diagnosis.host != nullptr ? Json(diagnosis.host->name) : Json(nullptr)},
                  {"source", diagnosis.host_source}};
  json["os"] = os_json(diagnosis.os);
  json["is_guest"] = diagnosis.is_guest ? Json(*diagnosis.is_guest) : Json(nullptr);
  json["verdict"] = diagnosis.verdict;
  json["codes"] = Json::array();
  for (const DiagnosisCode& code : diagnosis.codes) {
    json["codes"].push_back(
        {{"code", code.code}, {"detail", code.detail}, {"evidence", to_string(code.evidence)}});
  }
  json["comparisons"] = Json::array();
  for (const Comparison& c : diagnosis.comparisons)
    json["comparisons"].push_back(comparison_json(c));
  json["facts"] = Json::array();
  for (const CapturedFact& fact : capture.facts) {
    json["facts"].push_back({{"fact", fact.fact},
                             {"value", to_json(fact.value)},
                             {"evidence", to_string(fact.evidence)}});
  }
  json["notes"] = diagnosis.notes;
  return json;
}

std::string diagnosis_text(const Tables& tables, const Capture& capture, const Diagnosis& diagnosis,
                           TextStyle style) {
  const std::string device = capture.name.empty() ? "unnamed device" : printable(capture.name);
  std::string host = "unknown (give --host-chip)";
  if (diagnosis.host != nullptr) {
    host = fmt::format("{} (from {})", diagnosis.host->name, diagnosis.host_source);
  }
  std::string out = fmt::format("device   {}\nsystem   {}\nhost     {}\nverdict  {}\n", device,
                                os_text(diagnosis.os), host,
                                style.paint(TextStyle::Ink::bold, diagnosis.verdict));
  append_codes(out, tables, diagnosis, style);
  std::vector<std::string> hidden;
  for (const KindText& kind : kinds) {
    if (style.verbosity >= kind.verbosity) {
      append_comparisons(out, tables, diagnosis, kind, style);
    } else {
      const auto count = std::ranges::count(diagnosis.comparisons, kind.kind, &Comparison::kind);
      if (count > 0) hidden.push_back(fmt::format("{} {}", count, kind.heading));
    }
  }
  if (!hidden.empty())
    out += fmt::format("\nnot listed without -vv: {}\n", fmt::join(hidden, ", "));
  for (const std::string& note : diagnosis.notes) out += fmt::format("note: {}\n", wrap(note, 6));
  return out;
}

}  // namespace metaldoctor
