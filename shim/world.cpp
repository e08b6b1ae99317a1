#include "shim/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {

namespace {

constexpr std::string_view kFamilyQuery = "supportsFamily:";
// newArgumentEncoderWithLayout: is missing from the paravirtual driver of macOS 14 (observed by
// MLX, MoltenVK and Godot); later drivers were not read.
constexpr OsVersion kEncoderNotReadFrom{15, 0, 0};

constexpr std::string_view kOverrideFacts = "override.";

bool is_paravirtual(const Capture& guest) {
  return guest.is_guest().value_or(false);
}

Diagnostic host_unknown(const Chip* named) {
  return {Fault::refused, "host-unknown", "",
          named
              ? fmt::format("the GPU family of {} is not confirmed, so nothing bounds what may be "
                            "claimed",
                            named->name)
              : "the host's chip is not known, so nothing bounds what may be claimed",
          named ? "none of its answers may be raised until its family is known"
                : "name it with --host-chip, for example --host-chip 'M1 Ultra'"};
}

}  // namespace

Situation::Situation(const Tables& tables, const Capture& guest, const RecommendOptions& options)
    : tables_(tables),
      guest_(guest),
      options_(options),
      os_(known_os(tables, guest, options.diagnose)) {
  const auto host = host_chip(tables, guest, options.diagnose);
  host_ = host.chip;
  if (const auto foreign = not_overridable(tables, guest)) {
    is_apple_gpu_ = false;
    obstacle_ = Diagnostic{Fault::refused, "not-an-apple-gpu", "",
                           fmt::format("{}: no answer of it may be changed", *foreign),
                           "answers of an Apple chip would be false for this device"};
  } else if (!host.contradiction.empty()) {
    obstacle_ = Diagnostic{Fault::refused, "host-contradiction", "", host.contradiction,
                           "leave --host-chip out, or give the capture of a guest on that chip"};
  } else if (!host_ || !host_->family) {
    obstacle_ = host_unknown(host_);
  }
  learn_stock_answers();
}

/// An override that is active makes the guest another one than the tables describe.
void Situation::learn_stock_answers() {
  if (!is_apple_gpu_ || !is_paravirtual(guest_)) return;
  if (std::any_of(guest_.facts.begin(), guest_.facts.end(),
                  [](const CapturedFact& fact) { return fact.fact.starts_with(kOverrideFacts); })) {
    return;
  }
  std::map<QueryKey, Value> stock;
  for (const ParavirtualAnswer& row : tables_.paravirtual()) {
    const auto& [key, value] = row.answer;
    if (!is_known(value) || row.provenance.evidence != Evidence::measured) continue;
    const Value read = guest_.answer(key);
    if (is_known(read) && read != value) return;
    if (overridable(key)) stock.emplace(key, value);
  }
  stock_ = std::move(stock);
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
  if (!host()) return std::nullopt;
  const auto known = host_answers_.find(key);
  if (known != host_answers_.end()) return known->second;
  auto answer = metaldoctor::host_answer(tables_, *host_, os_, key);
  if (answer && !is_known(answer->answer.value)) answer.reset();
  return host_answers_.emplace(key, std::move(answer)).first->second;
}

std::optional<HostAnswer> Situation::common_limit(const QueryKey& key) const {
  if (!is_apple_gpu_) return std::nullopt;
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

bool Situation::taken_from_stock(const QueryKey& key) const {
  return !is_known(guest_.answer(key)) && !taken_from_limit(key) && stock_.contains(key);
}

Value Situation::guest_answer(const QueryKey& key) const {
  Value value = guest_.answer(key);
  if (is_known(value)) return value;
  if (key.query == "name" && !guest_.name.empty()) return guest_.name;
  if (key.query == "architecture.name" && !guest_.architecture.empty()) return guest_.architecture;
  if (const auto limit = common_limit(key)) return limit->answer.value;
  const auto stock = stock_.find(key);
  return stock == stock_.end() ? Value{} : stock->second;
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
  std::vector<std::string> unset, builds, limits, stock, drivers, notes;
  for (const Atom& atom : atoms) {
    const std::string text = to_string(atom);
    if (atom.kind == AtomKind::env && !environment_given(atom.name)) unset.push_back(atom.name);
    if (atom.kind == AtomKind::build) builds.push_back(atom.name);
    if (atom.kind == AtomKind::answer && taken_from_limit(atom.key)) {
      limits.push_back(fmt::format("{}={}", text, to_string(guest_answer(atom.key))));
    }
    if (atom.kind == AtomKind::answer && taken_from_stock(atom.key)) {
      stock.push_back(fmt::format("{}={}", text, to_string(guest_answer(atom.key))));
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
  const auto named = parse_os_version(guest_.system.os);
  const auto told = named ? named : options_.diagnose.os;
  if (told && os_.exact && *told != *os_.exact) {
    notes.push_back(fmt::format("macOS {} is the name that older programs are told: taken as {}",
                                to_string(*told), to_string(*os_.exact)));
  }
  if (!os_.exact) {
    notes.push_back(fmt::format("the guest's macOS is not known{}: {} is assumed",
                                os_.at_least ? " (at least " + to_string(*os_.at_least) + ")" : "",
                                to_string(os_.assumed)));
  }
  note("not read in this guest, taken as every Mac chip answers it: {}", limits);
  note("not read in this guest, taken as stock paravirtual guests answer it: {}", stock);
  note("taken as no, as observed with the paravirtual driver: {}", drivers);
  note("environment variables taken as unset: {}", unset);
  note("build flags taken as set: {}", builds);
  return notes;
}

}  // namespace metaldoctor
