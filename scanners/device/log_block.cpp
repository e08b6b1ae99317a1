#include "scanners/device/log_block.h"

#include <algorithm>
#include <array>

namespace metaldoctor {
namespace {

/// Facts and device names of one block; a hostile log must not grow them without bound.
constexpr std::size_t kMostFacts = 256;
constexpr std::size_t kMostNames = 64;

bool detail_flag(const LogGrammar::Item& item, const char* name) {
  if (!item.detail.is_object()) return false;
  const auto it = item.detail.find(name);
  return it != item.detail.end() && it->is_boolean() && it->get<bool>();
}

std::string_view said_by(const LogLine& line, const LogGrammar::Item& item) {
  if (item.form == "mention") return {};
  std::string_view said = line.text;
  said.remove_prefix(std::min(item.key.size(), said.size()));
  if (said.starts_with(' ')) said.remove_prefix(1);
  return said;
}

/// What a block says at most once: the item, and for families the line of them.
std::string once_key(const LogLine& line, const LogGrammar::Item& item) {
  if (item.form != "family") return item.key;
  return std::string(log_family_line(said_by(line, item)));
}

}  // namespace

struct LogBlock::Form {
  std::string_view name;
  Reader read;
  bool once;  ///< a block says it once; again means the next block
};

const LogBlock::Form* LogBlock::form(std::string_view name) {
  static constexpr std::array<Form, 12> kForms{{
      {"flag", &LogBlock::read_flag, false},
      {"mention", &LogBlock::read_flag, false},
      {"bool", &LogBlock::read_bool, true},
      {"integer", &LogBlock::read_integer, false},
      {"megabytes", &LogBlock::read_megabytes, true},
      {"family", &LogBlock::read_family, true},
      {"device", &LogBlock::read_device, false},
      {"used_device", &LogBlock::read_used_device, false},
      {"cpu", &LogBlock::read_cpu, false},
      {"skipped", &LogBlock::read_skipped, false},
      {"quoted", &LogBlock::read_quoted, false},
      {"banner", &LogBlock::read_banner, false},
  }};
  const auto* it = std::find_if(kForms.begin(), kForms.end(),
                                [&](const Form& candidate) { return candidate.name == name; });
  return it == kForms.end() ? nullptr : it;
}

bool LogBlock::ends_before(const LogLine& line, const LogGrammar::Item& item) const {
  // ggml_metal_init names the device again after ggml_metal_device_init described it, so only
  // answers under the same prefix end a block; an override banner stands before everything.
  if (detail_flag(item, "opens")) {
    return item.form == "banner" ? !answered_under_.empty() : answered_under_.contains(line.prefix);
  }
  if (item.form == "family" && closed_) return true;
  const Form* how = form(item.form);
  if (how == nullptr || !how->once) return false;
  return once_.contains({line.prefix, once_key(line, item)});
}

void LogBlock::mark_damaged(std::size_t line) {
  if (empty_) return;  // before the first line of a device nothing of it can be lost
  if (!damaged_) damaged_ = line;
  if (!closed_ && !doubtful_) doubtful_ = line;
}

void LogBlock::add(const LogLine& line, const LogGrammar& grammar, const LogGrammar::Item& item) {
  empty_ = false;
  grammar_ = &grammar;
  const Form* how = form(item.form);
  if (how == nullptr) return;
  if (!detail_flag(item, "opens")) answered_under_.insert(line.prefix);
  if (how->once) {
    if (std::string key = once_key(line, item); !key.empty()) {
      once_.insert({line.prefix, std::move(key)});
    }
  }
  learn_ladders(grammar);
  // The key of a damaged line can be trusted to say where it belongs, its value cannot.
  if (line.damaged || !(this->*how->read)(line, item, said_by(line, item))) {
    mark_damaged(line.number);
    return;
  }
  note_progress(item, line.number);
}

bool LogBlock::families_printed() const {
  return std::any_of(ladders_.begin(), ladders_.end(),
                     [](const auto& entry) { return entry.second.highest.has_value(); });
}

void LogBlock::note_progress(const LogGrammar::Item& item, std::size_t line) {
  if (detail_flag(item, "starts") && !families_printed() && !closed_) started_ = true;
  completed_ = completed_ || detail_flag(item, "completes");
  if (!detail_flag(item, "closes") || closed_) return;
  closed_ = true;
  closing_line_ = line;
}

/// The ladders that the program asks, so that those it printed nothing for are known too.
void LogBlock::learn_ladders(const LogGrammar& grammar) {
  for (const LogGrammar::Item& item : grammar.items) {
    if (item.form != "family" || !item.detail.is_object()) continue;
    const auto ladders = item.detail.find("ladders");
    if (ladders == item.detail.end() || !ladders->is_object()) continue;
    for (const auto& [name, bounds] : ladders->items()) {
      Ladder& ladder = ladders_[name];
      ladder.from = bounds.value("from", std::int64_t{0});
      ladder.to = bounds.value("to", std::int64_t{0});
    }
  }
}

CaptureSource LogBlock::source(std::size_t line) const {
  return {CaptureSource::Kind::log, file_, line, {}};
}

void LogBlock::set_fact(std::string fact, Value value, std::size_t line) {
  if (contradicted_.contains(fact)) return;
  const auto it = std::find_if(capture_.facts.begin(), capture_.facts.end(),
                               [&](const CapturedFact& row) { return row.fact == fact; });
  if (it == capture_.facts.end()) {
    if (capture_.facts.size() >= kMostFacts) return;
    capture_.facts.push_back({std::move(fact), std::move(value), Evidence::measured, source(line)});
  } else if (std::holds_alternative<bool>(value) && it->value != value) {
    capture_.facts.erase(it);
    contradicted_.insert(std::move(fact));
  }
}

void LogBlock::set_answer(const QueryKey& key, Value value, Evidence evidence, std::size_t line) {
  capture_.answers.push_back({{key, std::move(value)}, evidence, source(line)});
}

void LogBlock::yield(const LogGrammar::Item& item, Value value, std::size_t line) {
  constexpr std::string_view kFact = "fact:";
  if (item.yields.starts_with(kFact)) {
    set_fact(item.yields.substr(kFact.size()), std::move(value), line);
    return;
  }
  if (item.yields.empty() || contradicted_.contains(item.yields)) return;
  const QueryKey key{item.yields, {}};
  const CapturedAnswer* before = capture_.find(key);
  if (before == nullptr) {
    set_answer(key, std::move(value), Evidence::measured, line);
  } else if (before->answer.value != value) {
    std::erase_if(capture_.answers, [&](const auto& row) { return row.answer.key == key; });
    capture_.unknown.push_back({key, "the log gives two different answers"});
    contradicted_.insert(item.yields);
  }
}

bool LogBlock::read_flag(const LogLine& line, const LogGrammar::Item& item, std::string_view said) {
  if (!said.empty()) return false;
  // Some flags say that something failed.
  const bool value = !item.detail.is_object() || item.detail.value("value", true);
  yield(item, value, line.number);
  return true;
}

bool LogBlock::read_bool(const LogLine& line, const LogGrammar::Item& item, std::string_view said) {
  const auto value = log_bool(said);
  if (value) yield(item, *value, line.number);
  return value.has_value();
}

bool LogBlock::read_integer(const LogLine& line, const LogGrammar::Item& item,
                            std::string_view said) {
  const auto value = log_integer(said);
  // A number has no end mark: at the end of the input digits may be missing.
  if (!value || !line.terminated) return false;
  yield(item, *value, line.number);
  return true;
}

bool LogBlock::read_megabytes(const LogLine& line, const LogGrammar::Item& item,
                              std::string_view said) {
  const auto value = log_megabytes(said);
  if (value) yield(item, *value, line.number);
  return value.has_value();
}

bool LogBlock::read_family(const LogLine& line, const LogGrammar::Item&, std::string_view said) {
  const auto family = log_family(said);
  if (!family) return false;
  const auto it = ladders_.find(family->line);
  if (it == ladders_.end()) return false;
  Ladder& ladder = it->second;
  if (family->value > ladder.from || family->value < ladder.to) return false;
  ladder.highest = family->value;
  ladder.line = line.number;
  return true;
}

void LogBlock::add_device(const LogDevice& device, bool listed, std::size_t line) {
  if (!device.id.empty()) set_fact("ggml.device_id", device.id, line);
  auto& names = listed ? listed_names_ : chosen_names_;
  if (!device.name.empty() && names.size() < kMostNames) names.insert(device.name);
}

bool LogBlock::read_device(const LogLine& line, const LogGrammar::Item& item,
                           std::string_view said) {
  const auto device = log_device(said, line.terminated);
  if (device) add_device(*device, detail_flag(item, "listed"), line.number);
  return device.has_value();
}

bool LogBlock::read_used_device(const LogLine& line, const LogGrammar::Item&,
                                std::string_view said) {
  const auto device = log_used_device(said);
  if (device) add_device(*device, false, line.number);
  return device.has_value();
}

bool LogBlock::read_cpu(const LogLine&, const LogGrammar::Item&, std::string_view said) {
  auto brand = log_parenthesised(said);
  if (!brand) return false;
  capture_.system.cpu_brand = *std::move(brand);
  return true;
}

bool LogBlock::read_skipped(const LogLine& line, const LogGrammar::Item& item,
                            std::string_view said) {
  if (!log_skipped(said)) return false;
  // The fact is how many; its source is the first of them.
  constexpr std::string_view kFact = "fact:";
  for (CapturedFact& row : capture_.facts) {
    if (kFact.size() + row.fact.size() != item.yields.size() || !item.yields.ends_with(row.fact)) {
      continue;
    }
    row.value = std::get<std::int64_t>(row.value) + 1;
    return true;
  }
  yield(item, std::int64_t{1}, line.number);
  return true;
}

bool LogBlock::read_quoted(const LogLine& line, const LogGrammar::Item& item,
                           std::string_view said) {
  auto text = log_quoted(said);
  if (text) yield(item, *std::move(text), line.number);
  return text.has_value();
}

bool LogBlock::read_banner(const LogLine& line, const LogGrammar::Item&, std::string_view said) {
  const auto banner = log_banner(said);
  if (!banner) return false;
  std::string_view tool = line.prefix;
  if (tool.starts_with('[') && tool.ends_with(']')) tool = tool.substr(1, tool.size() - 2);
  set_fact("override.tool", std::string(tool), line.number);
  set_fact("override.program", banner->program, line.number);
  for (const auto& [name, value] : banner->settings) {
    set_fact("override." + name, value, line.number);
  }
  return true;
}

}  // namespace metaldoctor
