#include "tools/render/explain.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "tables/document.h"
#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

/// One entry under construction; empty fields are left out.
class Entry {
 public:
  Entry(std::string_view kind, std::string_view title) {
    json_ = {{"kind", kind}, {"title", title}, {"fields", Json::array()}};
  }

  Entry& field(std::string_view label, std::string_view text) {
    if (!text.empty()) json_["fields"].push_back({{"label", label}, {"text", text}});
    return *this;
  }
  Entry& list(std::string_view label, const std::vector<std::string>& items) {
    return field(label, fmt::format("{}", fmt::join(items, ", ")));
  }

  Json known_from(const Tables& tables, const Provenance& provenance) {
    field("note", provenance.note);
    json_["evidence"] = to_string(provenance.evidence);
    json_["sources"] = Json::array();
    for (const std::string& key : provenance.sources)
      json_["sources"].push_back(tables.source(key));
    return std::move(json_);
  }

 private:
  Json json_;
};

std::string floor_text(const std::optional<std::string>& family) {
  return family ? *family : std::string("no");
}

void explain_query(const Tables& tables, std::string_view name, Json& out) {
  const Query* query = tables.query(name);
  if (query == nullptr) return;
  Entry entry("query", query->selector);
  entry.list("also", query->aliases).field("argument", query->argument).field("unit", query->unit);
  entry.field("encoding", query->encoding_arm64 + " (arm64)");
  entry.field("since", "macOS " + to_string(query->min_macos));
  entry.field("can be overridden", query->overridable
                                       ? fmt::format("yes, wire number {}", query->wire.value_or(0))
                                       : "no");
  entry.field("real devices answer", query->expected);
  entry.field("feature", query->feature).field("limit", query->limit);
  out.push_back(entry.known_from(tables, query->provenance));
}

void explain_family(const Tables& tables, std::string_view name, Json& out) {
  const Family* family = tables.family(name);
  std::int64_t value = 0;
  std::string_view digits = name;
  constexpr std::string_view query_prefix = "supportsFamily:";
  if (digits.starts_with(query_prefix)) digits.remove_prefix(query_prefix.size());
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (family == nullptr && parsed.ec == std::errc() &&
      parsed.ptr == digits.data() + digits.size()) {
    family = tables.family(value);
  }
  for (const Family& row : tables.families()) {
    if (row.name == name) family = &row;
  }
  if (family == nullptr) return;
  Entry entry("family", fmt::format("{} = {}", family->name, family->value));
  entry.list("implies", family->implies);
  entry.field("since", "macOS " + to_string(family->min_macos));
  std::vector<std::string> chips;
  for (const Chip& chip : tables.chips()) {
    if (chip.family == family->short_name) chips.push_back(chip.name);
  }
  entry.list("highest family of", chips);
  std::vector<std::string> features;
  for (const Feature& feature : tables.features()) {
    if (feature.apple == family->short_name || feature.mac == family->short_name ||
        feature.metal == family->short_name) {
      features.push_back(feature.id);
    }
  }
  entry.list("floor of features", features);
  out.push_back(entry.known_from(tables, family->provenance));
}

void explain_feature(const Tables& tables, std::string_view name, Json& out) {
  const Feature* feature = tables.feature(name);
  if (feature == nullptr) return;
  Entry entry("feature", feature->name);
  entry.field("id", feature->id);
  entry.field("lowest families",
              fmt::format("Metal: {}, Apple: {}, Mac: {}", floor_text(feature->metal),
                          floor_text(feature->apple), floor_text(feature->mac)));
  entry.field("asked by", feature->query);
  if (feature->min_macos) entry.field("since", "macOS " + to_string(*feature->min_macos));
  out.push_back(entry.known_from(tables, feature->provenance));
}

void explain_limit(const Tables& tables, std::string_view name, Json& out) {
  const Limit* limit = tables.limit(name);
  if (limit == nullptr) return;
  Entry entry("limit", limit->name);
  entry.field("id", limit->id).field("unit", limit->unit).field("asked by", limit->query);
  for (const Family& family : tables.families()) {
    const auto value = limit->values.find(family.short_name);
    if (value != limit->values.end()) entry.field(family.short_name, to_string(value->second));
  }
  out.push_back(entry.known_from(tables, limit->provenance));
}

void explain_hazard(const Tables& tables, std::string_view name, Json& out) {
  const Hazard* hazard = tables.hazard(name);
  if (hazard == nullptr) return;
  Entry entry("hazard", hazard->id);
  entry.field("effect", hazard->effect);
  std::vector<std::string> answers;
  for (const HazardAnswer& answer : hazard->answers) {
    answers.push_back(answer.argument ? fmt::format("{}{}", answer.query, *answer.argument)
                                      : answer.query);
  }
  entry.list("answers", answers);
  entry.field("applies to", hazard->scope == Hazard::Scope::process
                                ? "every process of a guest"
                                : fmt::format("{}", fmt::join(hazard->programs, ", ")));
  entry.list("or programs whose opened side sends", hazard->or_gate_sends);
  if (hazard->os_from) entry.field("from", "macOS " + to_string(*hazard->os_from));
  if (hazard->os_to) entry.field("until", "macOS " + to_string(*hazard->os_to));
  out.push_back(entry.known_from(tables, hazard->provenance));
}

void explain_verdict(const Tables& tables, std::string_view name, Json& out) {
  const Verdict* verdict = tables.verdict(name);
  if (verdict == nullptr) return;
  Entry entry(verdict->is_word ? "verdict" : "code", verdict->id);
  entry.field("means", verdict->meaning).field("what to do", verdict->advice);
  out.push_back(entry.known_from(tables, verdict->provenance));
}

void explain_chip(const Tables& tables, std::string_view name, Json& out) {
  const Chip* chip = tables.chip(name);
  if (chip == nullptr) return;
  Entry entry("chip", chip->name);
  entry.field("highest Apple family", chip->family.value_or("unconfirmed"));
  entry.field("architecture", chip->architecture).field("GPU name", chip->gpu_name);
  entry.list("models", chip->hw_models);
  out.push_back(entry.known_from(tables, chip->provenance));
}

/// "ggml-metal", or one range of it: "ggml-metal@G8".
void explain_app(const Tables& tables, std::string_view name, Json& out) {
  const std::size_t at = name.find('@');
  const App* app = tables.app(name.substr(0, at));
  if (app == nullptr) return;
  for (const AppRange& range : app->ranges) {
    if (at != std::string_view::npos && range.id != name.substr(at + 1)) continue;
    Entry entry("program", fmt::format("{}@{} - {}", app->id, range.id, app->name));
    entry.field("releases", range.title).list("named", range.aliases);
    for (const Rule& rule : range.rules) {
      entry.field(rule.id, fmt::format("{} -> {}", rule.predicate.print(), rule.opens));
    }
    entry.field("notes", range.notes);
    out.push_back(entry.known_from(tables, range.provenance));
  }
}

void explain_observation(const Tables& tables, std::string_view name, Json& out) {
  for (const Observation& row : tables.observations()) {
    if (row.id != name) continue;
    Entry entry("observation", row.id);
    entry.field("guest", row.guest).field("host", row.host).field("seen", row.text);
    out.push_back(entry.known_from(tables, {Evidence::measured, row.sources, {}}));
  }
}

void explain_rule(const Tables& tables, std::string_view path, const Rule& rule, Json& out) {
  Entry entry("path", path);
  entry.field("open when", rule.predicate.print()).field("opens", rule.opens);
  entry.field("effect", rule.effect).list("kernels", rule.kernels);
  entry.list("logs", rule.log_lines).list("risk when forced", rule.hazards_if_forced);
  out.push_back(entry.known_from(tables, rule.provenance));
}

/// "ggml-metal@G8/has_bfloat", as recommend prints it, or "has_bfloat" wherever it occurs.
void explain_path(const Tables& tables, std::string_view name, Json& out) {
  for (const App& app : tables.apps()) {
    for (const AppRange& range : app.ranges) {
      for (const Rule& rule : range.rules) {
        const std::string path = fmt::format("{}@{}/{}", app.id, range.id, rule.id);
        if (name == path || name == rule.id) explain_rule(tables, path, rule, out);
      }
    }
  }
}

struct EvidenceText {
  Evidence evidence;
  std::string_view text;
};

constexpr std::array<EvidenceText, 6> evidence_texts = {{
    {Evidence::measured, "seen in a named run on real hardware"},
    {Evidence::executed, "the simulator ran the code"},
    {Evidence::read, "read in source text or disassembly"},
    {Evidence::documented, "Apple's tables, headers or documentation say so"},
    {Evidence::inferred, "follows from other claims and an assumption that is stated beside it"},
    {Evidence::unknown, "not known; never taken as no"},
}};

void explain_evidence(const Tables& tables, std::string_view name, Json& out) {
  for (const EvidenceText& row : evidence_texts) {
    if (to_string(row.evidence) != name) continue;
    Entry entry("evidence level", name);
    entry.field("means", row.text);
    out.push_back(entry.known_from(tables, {Evidence::documented, {"docs/coding.md, Claims"}, {}}));
  }
}

using Explain = void (*)(const Tables&, std::string_view, Json&);
constexpr std::array<Explain, 11> explainers = {
    explain_query,  explain_family,      explain_feature, explain_limit,
    explain_hazard, explain_verdict,     explain_chip,    explain_app,
    explain_path,   explain_observation, explain_evidence};

std::vector<std::string> names_of(const Tables& tables) {
  std::vector<std::string> names;
  const auto add = [&names](std::string name) { names.push_back(std::move(name)); };
  for (const Query& row : tables.queries()) {
    add(row.selector);
    for (const std::string& alias : row.aliases) add(alias);
  }
  for (const Family& row : tables.families()) add(row.short_name), add(row.name);
  for (const Feature& row : tables.features()) add(row.id);
  for (const Limit& row : tables.limits()) add(row.id);
  for (const Hazard& row : tables.hazards()) add(row.id);
  for (const Verdict& row : tables.verdicts()) add(row.id);
  for (const Chip& row : tables.chips()) add(row.name);
  for (const App& row : tables.apps()) add(row.id);
  return names;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Json entries_of(const Tables& tables, std::string_view name) {
  Json entries = Json::array();
  for (const Explain explainer : explainers) explainer(tables, name, entries);
  return entries;
}

}  // namespace

Result<Json> explain(const Tables& tables, std::string_view name) {
  Json entries = entries_of(tables, name);
  if (entries.empty()) {
    // Codes are in capitals, selectors in camel case; nobody types either exactly.
    const auto names = names_of(tables);
    const auto same = [&](const std::string& known) { return lower(known) == lower(name); };
    if (const auto known = std::ranges::find_if(names, same); known != names.end()) {
      entries = entries_of(tables, *known);
    }
  }
  if (entries.empty()) {
    return fail(Fault::usage, "unknown-name", "explain",
                fmt::format("nothing in the tables is called '{}'", name),
                "metaldoctor tables lists the tables; metaldoctor tables NAME its rows");
  }
  return Json{{"schema", "metaldoctor.explanation/1"}, {"name", name}, {"entries", entries}};
}

std::string explanation_text(const Tables&, const Json& explanation, TextStyle style) {
  std::string out;
  for (const Json& entry : explanation.at("entries")) {
    if (!out.empty()) out += "\n";
    out += fmt::format("{} {} [{}]\n", entry.at("kind").get<std::string>(),
                       style.paint(TextStyle::Ink::bold, entry.at("title").get<std::string>()),
                       entry.at("evidence").get<std::string>());
    for (const Json& field : entry.at("fields")) {
      const auto label = field.at("label").get<std::string>();
      out += fmt::format("  {}: {}\n", label,
                         wrap(field.at("text").get<std::string>(), 4, label.size() + 4));
    }
    for (const Json& source : entry.at("sources")) {
      out += fmt::format("  source: {}\n", wrap(source.get<std::string>(), 4, 10));
    }
  }
  return out;
}

}  // namespace metaldoctor
