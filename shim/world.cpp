#include "shim/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {

namespace {

constexpr std::string_view kFamilyQuery = "supportsFamily:";
// newArgumentEncoderWithLayout: is missing from the paravirtual driver of macOS 14 (observed by
// MLX, MoltenVK and Godot); later drivers were not read.
constexpr OsVersion kEncoderNotReadFrom{15, 0, 0};

bool is_paravirtual(const Capture& guest) {
  return guest.is_guest().value_or(false);
}

}  // namespace

Situation::Situation(const Tables& tables, const Capture& guest, const RecommendOptions& options)
    : tables_(tables), guest_(guest), options_(options), os_(guest.os(tables)) {
  host_ = host_chip(tables, guest, options.diagnose).first;
  if (options.diagnose.os) os_.exact = options.diagnose.os;
}

bool Situation::overridable(const QueryKey& key) const {
  const Query* query = tables_.query(key.query);
  return query && query->overridable;
}

bool Situation::overridable(const Atom& atom) const {
  return atom.kind == AtomKind::answer && overridable(atom.key);
}

const Family* Situation::family(const QueryKey& key) const {
  if (key.query != kFamilyQuery || key.arguments.size() != 1) return nullptr;
  return tables_.family(key.arguments.front());
}

std::optional<HostAnswer> Situation::host_answer(const QueryKey& key) const {
  if (!host_) return std::nullopt;
  const auto known = host_answers_.find(key);
  if (known != host_answers_.end()) return known->second;
  auto answer = metaldoctor::host_answer(tables_, *host_, os_, key);
  if (answer && !is_known(answer->answer.value)) answer.reset();
  return host_answers_.emplace(key, std::move(answer)).first->second;
}

std::optional<HostAnswer> Situation::common_limit(const QueryKey& key) const {
  const Query* query = tables_.query(key.query);
  if (!query || query->limit.empty() || query->type != AnswerType::integer) return std::nullopt;
  const auto known = common_limits_.find(key);
  if (known != common_limits_.end()) return known->second;
  auto answer = any_host_answer(tables_, key);
  if (answer && !std::holds_alternative<std::int64_t>(answer->answer.value)) answer.reset();
  return common_limits_.emplace(key, std::move(answer)).first->second;
}

bool Situation::taken_from_limit(const QueryKey& key) const {
  return !is_known(guest_.answer(key)) && common_limit(key).has_value();
}

Value Situation::guest_answer(const QueryKey& key) const {
  Value value = guest_.answer(key);
  if (is_known(value)) return value;
  if (key.query == "name" && !guest_.name.empty()) return guest_.name;
  if (key.query == "architecture.name" && !guest_.architecture.empty()) return guest_.architecture;
  const auto limit = common_limit(key);
  return limit ? limit->answer.value : Value{};
}

Value Situation::driver_fact(const std::string& name) const {
  if (const CapturedFact* fact = guest_.fact(name)) return fact->value;
  if (!is_paravirtual(guest_)) return {};
  if (name == "rset_ok") return false;
  if (name == "arg_encoder_ok" && os_.exact && *os_.exact < kEncoderNotReadFrom) {
    return false;
  }
  return {};
}

bool Situation::environment_given(const std::string& name) const {
  return std::any_of(options_.environment.begin(), options_.environment.end(),
                     [&](const auto& variable) { return variable.first == name; });
}

Value Situation::other_value(const Atom& atom) const {
  switch (atom.kind) {
    case AtomKind::driver:
      return driver_fact(atom.name);
    case AtomKind::build:
      return true;
    case AtomKind::env:
      for (const auto& [name, value] : options_.environment) {
        if (name == atom.name) return value;
      }
      return false;
    case AtomKind::os: {
      const auto version = parse_os_version(atom.name);
      if (!version) return {};
      return os_.reaches(*version) != OsKnowledge::Reach::no;
    }
    case AtomKind::answer:
      break;
  }
  return {};
}

World Situation::guest() const {
  return [this](const Atom& atom) {
    return atom.kind == AtomKind::answer ? guest_answer(atom.key) : other_value(atom);
  };
}

World Situation::host_world() const {
  return [this](const Atom& atom) -> Value {
    if (!overridable(atom)) {
      return atom.kind == AtomKind::answer ? guest_answer(atom.key) : other_value(atom);
    }
    const auto answer = host_answer(atom.key);
    return answer ? answer->answer.value : Value{};
  };
}

std::string Situation::describe(const Atom& atom) const {
  const Value value = guest()(atom);
  std::string_view note;
  if (atom.kind == AtomKind::env && !environment_given(atom.name)) note = " (taken as unset)";
  if (atom.kind == AtomKind::driver && is_known(value) && !guest_.fact(atom.name)) {
    note = " (a paravirtual driver)";
  }
  return fmt::format("{} is {}{}", to_string(atom), to_string(value), note);
}

std::vector<std::string> Situation::assumptions(const std::set<Atom>& atoms) const {
  std::vector<std::string> unset, builds, limits, drivers, notes;
  for (const Atom& atom : atoms) {
    const std::string text = to_string(atom);
    if (atom.kind == AtomKind::env && !environment_given(atom.name)) unset.push_back(atom.name);
    if (atom.kind == AtomKind::build) builds.push_back(atom.name);
    if (atom.kind == AtomKind::answer && taken_from_limit(atom.key)) {
      limits.push_back(fmt::format("{}={}", text, to_string(guest_answer(atom.key))));
    }
    if (atom.kind == AtomKind::driver && is_known(driver_fact(atom.name)) &&
        !guest_.fact(atom.name)) {
      drivers.push_back(text);
    }
  }
  const auto note = [&](std::string_view form, const std::vector<std::string>& names) {
    if (!names.empty()) {
      notes.push_back(fmt::format(fmt::runtime(form), fmt::join(names, ", ")));
    }
  };
  if (!os_.exact) {
    notes.push_back(fmt::format("the guest's macOS is not known{}: {} is assumed",
                                os_.at_least ? " (at least " + to_string(*os_.at_least) + ")" : "",
                                to_string(os_.assumed)));
  }
  note("not read in this guest, taken as every Mac chip answers it: {}", limits);
  note("taken as no, as observed with the paravirtual driver: {}", drivers);
  note("environment variables taken as unset: {}", unset);
  note("build flags taken as set: {}", builds);
  return notes;
}

}  // namespace metaldoctor
