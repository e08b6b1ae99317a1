#include "scanners/diagnose/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace metaldoctor {
namespace {

using Kind = Comparison::Kind;

/// Editions of Apple's tables disagree here: the other edition's number on a device is no finding.
struct EditionConflict {
  std::string_view query;
  std::int64_t value;
  std::string_view why;
};
constexpr std::array<EditionConflict, 1> kEditionConflicts{{
    {"maxArgumentBufferSamplerCount", 996,
     "the 2025 edition gives 1024 for Apple7 and Apple8, readers of the 2026 one give 996"},
}};

const EditionConflict* edition_conflict(const QueryKey& key, const Value& value) {
  const auto* it = std::find_if(kEditionConflicts.begin(), kEditionConflicts.end(),
                                [&](const EditionConflict& row) {
                                  return row.query == key.query && value == Value{row.value};
                                });
  return it == kEditionConflicts.end() ? nullptr : it;
}

/// Of alignments, the smaller one is the more capable answer.
bool smaller_is_more(const QueryKey& key) {
  return key.query.starts_with("minimum");
}

Kind kind_of(const QueryKey& key, const Value& guest, const Value& expected) {
  if (!is_known(guest) || !is_known(expected) || guest.index() != expected.index()) {
    return Kind::unknown;
  }
  if (guest == expected) return Kind::agrees;
  if (const bool* claimed = std::get_if<bool>(&guest)) {
    return *claimed ? Kind::over_claim : Kind::under_report;
  }
  const auto* ours = std::get_if<std::int64_t>(&guest);
  if (ours == nullptr) return Kind::unknown;
  const bool more = *ours > std::get<std::int64_t>(expected);
  return more != smaller_is_more(key) ? Kind::over_claim : Kind::under_report;
}

std::string why_unknown(const Capture& capture, const QueryKey& key) {
  const auto it = std::find_if(capture.unknown.begin(), capture.unknown.end(),
                               [&](const UnknownAnswer& row) { return row.key == key; });
  return it != capture.unknown.end() && !it->reason.empty() ? it->reason : "the input does not say";
}

Comparison compare_one(const Capture& capture, const HostAnswer& host) {
  Comparison row;
  row.key = host.answer.key;
  row.expected = host.answer.value;
  row.expected_evidence = host.evidence;
  row.sources = host.sources;
  row.reason = host.why;
  const CapturedAnswer* guest = capture.find(row.key);
  if (guest == nullptr) {
    row.reason = why_unknown(capture, row.key);
    return row;
  }
  row.guest = guest->answer.value;
  row.guest_evidence = guest->evidence;
  row.evidence = weaker(guest->evidence, host.evidence);
  row.kind = kind_of(row.key, row.guest, row.expected);
  if (!guest->source.citation.empty()) row.sources.push_back(guest->source.citation);
  return row;
}

/// What keeps a difference from being a finding.
void excuse(const Capture& capture, Comparison& row) {
  if (row.kind != Kind::under_report && row.kind != Kind::over_claim) return;
  if (const EditionConflict* conflict = edition_conflict(row.key, row.guest)) {
    row.kind = Kind::unknown;
    row.reason = conflict->why;
    return;
  }
  // On a real device the answer is better evidence than an expectation that rests on an
  // assumption, such as the newest macOS.
  const bool real_device = capture.is_guest() == false;
  if (real_device && row.expected_evidence >= Evidence::inferred) {
    row.kind = Kind::unknown;
    row.reason += "; the device's own answer counts for more";
  }
}

/// An answer that no row of the host covers: a family that does not exist, or one that the tables
/// do not know of.
Comparison compare_uncovered(const Tables& tables, const CapturedAnswer& guest) {
  Comparison row;
  row.key = guest.answer.key;
  row.guest = guest.answer.value;
  row.guest_evidence = guest.evidence;
  row.reason = "the tables do not say";
  const bool family = row.key.query == "supportsFamily:" && row.key.arguments.size() == 1;
  if (family && row.guest == Value{true} && tables.family(row.key.arguments.front()) == nullptr) {
    row.kind = Kind::over_claim;
    row.expected = false;
    row.expected_evidence = Evidence::documented;
    row.evidence = weaker(guest.evidence, Evidence::documented);
    row.reason = "MTLGPUFamily has no such value";
  }
  return row;
}

void add_uncovered(const Tables& tables, const Capture& capture, std::vector<Comparison>& rows) {
  std::set<QueryKey> covered;
  for (const Comparison& row : rows) covered.insert(row.key);
  for (const CapturedAnswer& answer : capture.answers) {
    if (!covered.contains(answer.answer.key)) rows.push_back(compare_uncovered(tables, answer));
  }
}

}  // namespace

std::vector<Comparison> compare_with_host(const Tables& tables, const Capture& capture,
                                          const Chip& host, const OsKnowledge& os) {
  std::vector<Comparison> rows;
  for (const HostAnswer& answer : host_answers(tables, host, os)) {
    rows.push_back(compare_one(capture, answer));
    excuse(capture, rows.back());
  }
  add_uncovered(tables, capture, rows);
  return rows;
}

namespace {

/// What is the same on every Mac, so that the host need not be known. Of the families these are the
/// Apple ones that the lowest Mac chip has, and only a guest may be short of them.
std::optional<HostAnswer> answer_everywhere(const Tables& tables, const Capture& capture,
                                            const QueryKey& key) {
  if (key.query == "supportsFeatureSet:") return std::nullopt;
  if (key.query != "supportsFamily:") return any_host_answer(tables, key);
  const Family* family = tables.family(key.arguments.front());
  if (capture.is_guest() != true || family == nullptr || family->line != "Apple") {
    return std::nullopt;
  }
  auto anywhere = any_host_answer(tables, key);
  if (!anywhere || anywhere->answer.value != Value{true}) return std::nullopt;
  anywhere->evidence = weaker(anywhere->evidence, Evidence::inferred);
  return anywhere;
}

}  // namespace

std::vector<Comparison> compare_without_host(const Tables& tables, const Capture& capture) {
  std::vector<Comparison> rows;
  for (const CapturedAnswer& answer : capture.answers) {
    const QueryKey& key = answer.answer.key;
    if (const auto anywhere = answer_everywhere(tables, capture, key)) {
      rows.push_back(compare_one(capture, *anywhere));
      excuse(capture, rows.back());
      continue;
    }
    rows.push_back(compare_uncovered(tables, answer));
    if (rows.back().kind == Kind::unknown) rows.back().reason = "the host's chip is not known";
  }
  return rows;
}

std::vector<Comparison> compare_with_nothing(const Tables& tables, const Capture& capture) {
  std::vector<Comparison> rows;
  for (const CapturedAnswer& answer : capture.answers) {
    rows.push_back(compare_uncovered(tables, answer));
    if (rows.back().kind == Kind::unknown) rows.back().reason = "the GPU is not one of Apple's";
  }
  return rows;
}

}  // namespace metaldoctor
