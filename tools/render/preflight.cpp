#include "tools/render/preflight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace metaldoctor {
namespace {

struct VerdictWords {
  std::string_view verdict, words;
  TextStyle::Ink ink;
};
constexpr std::array<VerdictWords, 4> verdict_rows{{
    {"works", "works", TextStyle::Ink::good},
    {"refused", "refused silently: the program would run without the library", TextStyle::Ink::bad},
    {"killed", "killed: the program would not run", TextStyle::Ink::bad},
    {"undecided", "cannot be decided from the file", TextStyle::Ink::warn},
}};

const VerdictWords& row_of(std::string_view verdict) {
  const auto* found = std::ranges::find(verdict_rows, verdict, &VerdictWords::verdict);
  return found == verdict_rows.end() ? verdict_rows.back() : *found;
}

std::vector<std::string> citations(const Tables& tables, const PreflightRow& row) {
  std::vector<std::string> out;
  for (const std::string& key : row.provenance.sources) out.emplace_back(tables.source(key));
  return out;
}

Json remark_json(const Tables& tables, const PreflightRow& row) {
  Json json = {{"row", row.id}, {"reason", row.reason}};
  json["evidence"] = to_string(row.provenance.evidence);
  json["sources"] = citations(tables, row);
  return json;
}

Json slice_json(const Tables& tables, const Preflight& slice) {
  const PreflightRow& row = *slice.row;
  Json json = {{"arch", slice.arch}, {"verdict", row.verdict}, {"row", row.id}};
  json["reason"] = row.reason;
  json["todo"] = row.todo;
  json["note"] = row.provenance.note;
  json["evidence"] = to_string(row.provenance.evidence);
  json["sources"] = citations(tables, row);
  json["identifier"] = slice.identifier;
  json["team"] = slice.team_id;
  json["entitlements_problem"] = slice.entitlements_problem;
  json["facts"] = Json::object();
  for (const auto& [fact, value] : slice.facts) json["facts"][fact] = value;
  json["remarks"] = Json::array();
  for (const PreflightRow* remark : slice.remarks) {
    json["remarks"].push_back(remark_json(tables, *remark));
  }
  return json;
}

class Writer {
 public:
  Writer(const Tables& tables, TextStyle style) : tables_(tables), style_(style) {}

  void line(std::string_view label, std::string_view text) {
    if (text.empty()) return;
    constexpr std::size_t indent = 10;
    out_ += fmt::format("  {:<8}{}\n", label, wrap(text, indent, indent));
  }

  void slice(const Preflight& slice) {
    const PreflightRow& row = *slice.row;
    const VerdictWords& words = row_of(row.verdict);
    out_ += fmt::format("{}: {} [{}]\n", slice.arch, style_.paint(words.ink, words.words),
                        to_string(row.provenance.evidence));
    line("because", row.reason);
    line("", slice.entitlements_problem);
    line("but", row.provenance.note);
    line("do", row.todo);
    for (const PreflightRow* remark : slice.remarks) {
      line("note", fmt::format("{} [{}]", remark->reason, to_string(remark->provenance.evidence)));
    }
    if (style_.verbosity == 0) return;
    line("row", row.id);
    for (const std::string& source : citations(tables_, row)) line("source", source);
    if (!slice.identifier.empty()) {
      line("signed", fmt::format("{}{}{}", printable(slice.identifier),
                                 slice.team_id.empty() ? "" : ", team ", printable(slice.team_id)));
    }
    std::vector<std::string> facts;
    for (const auto& [fact, value] : slice.facts)
      facts.push_back(fmt::format("{}={}", fact, value));
    line("facts", fmt::format("{}", fmt::join(facts, " ")));
  }

  std::string take() { return std::move(out_); }
  void raw(std::string_view text) { out_ += text; }

 private:
  const Tables& tables_;
  TextStyle style_;
  std::string out_;
};

}  // namespace

std::string_view verdict_words(std::string_view verdict) {
  return row_of(verdict).words;
}

Json injection_json(const Preflight& slice) {
  const PreflightRow& row = *slice.row;
  return {{"verdict", row.verdict},
          {"row", row.id},
          {"reason", row.reason},
          {"evidence", to_string(row.provenance.evidence)}};
}

std::string injection_line(const Preflight& slice, TextStyle style) {
  const PreflightRow& row = *slice.row;
  const VerdictWords& words = row_of(row.verdict);
  constexpr std::size_t indent = 4;
  return fmt::format("  {}\n",
                     wrap(fmt::format("injection {}: {} [{}]", style.paint(words.ink, words.words),
                                      row.reason, to_string(row.provenance.evidence)),
                          indent, 2));
}

Json preflight_json(const Tables& tables, const PreflightReport& report) {
  Json json = {{"schema", "metaldoctor.preflight/1"}};
  json["file"] = printable(report.file);
  json["path"] = printable(report.path);
  json["steps"] = Json::array();
  for (const std::string& step : report.steps) json["steps"].push_back(printable(step));
  json["advice"] = report.advice;
  json["verdict"] = report.program.decision().row->verdict;
  json["chosen"] = report.program.decision().arch;
  json["slices"] = Json::array();
  for (const Preflight& slice : report.program.slices) {
    json["slices"].push_back(slice_json(tables, slice));
  }
  return json;
}

std::string preflight_text(const Tables& tables, const PreflightReport& report, TextStyle style) {
  Writer writer(tables, style);
  writer.raw(printable(report.path) + "\n");
  for (const std::string& step : report.steps) writer.line("via", step);
  for (const std::string& advice : report.advice) writer.line("advice", advice);
  writer.slice(report.program.decision());
  for (std::size_t i = 0; i < report.program.slices.size(); ++i) {
    if (i != report.program.chosen) writer.slice(report.program.slices[i]);
  }
  return writer.take();
}

}  // namespace metaldoctor
