#include "scanners/device/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scanners/device/log_block.h"
#include "scanners/device/log_lines.h"
#include "scanners/device/log_values.h"

namespace metaldoctor {
namespace {

/// A log of a program that starts without end, or a hostile one.
constexpr std::size_t kMostCaptures = 64;

struct Match {
  const LogGrammar* grammar = nullptr;
  const LogGrammar::Item* item = nullptr;
};

/// Keys begin what a line says; that of a mention stands after something that varies, such as the
/// source line of an assertion.
bool has_key(std::string_view text, const LogGrammar::Item& item) {
  const std::string_view key = item.key;
  if (item.form == "mention") return text.find(key) != text.npos;
  return text.starts_with(key) && (text.size() == key.size() || text[key.size()] == ' ');
}

/// The item with the longest key ("simdgroup reduction support" before "simdgroup reduction");
/// where grammars of several ages share it, the one the block was read by so far.
Match match(const Tables& tables, const LogLine& line, const LogGrammar* current) {
  Match best;
  for (const LogGrammar& grammar : tables.log_grammars()) {
    if (std::find(grammar.prefixes.begin(), grammar.prefixes.end(), line.prefix) ==
        grammar.prefixes.end()) {
      continue;
    }
    for (const LogGrammar::Item& item : grammar.items) {
      if (!has_key(line.text, item)) continue;
      const bool longer = best.item == nullptr || item.key.size() > best.item->key.size();
      const bool ours = best.item && item.key == best.item->key && &grammar == current;
      if (longer || ours) best = {&grammar, &item};
    }
  }
  return best;
}

/// A line under a known prefix whose key was cut ("GPU fam") or spoilt before a family.
bool may_hide_an_item(const Tables& tables, const LogLine& line) {
  if (line.text.find(kFamilyPrefix) != std::string::npos) return true;
  for (const LogGrammar& grammar : tables.log_grammars()) {
    if (std::find(grammar.prefixes.begin(), grammar.prefixes.end(), line.prefix) ==
        grammar.prefixes.end()) {
      continue;
    }
    const bool cut =
        std::any_of(grammar.items.begin(), grammar.items.end(),
                    [&](const LogGrammar::Item& item) { return item.key.starts_with(line.text); });
    if (cut) return true;
  }
  return false;
}

bool looks_like_json(std::string_view text) {
  const auto skip = [&] {
    const std::size_t at = text.find_first_not_of(" \t\r\n");
    text = at == std::string_view::npos ? std::string_view{} : text.substr(at);
  };
  skip();
  if (text.starts_with('{')) return true;
  if (!text.starts_with('[')) return false;
  text.remove_prefix(1);
  skip();
  return text.starts_with('{') || text.starts_with('"') || text.starts_with(']');
}

/// Everything that `part` says, `whole` says too.
bool says_nothing_new(const Capture& part, const Capture& whole) {
  const bool names = part.name.empty() || part.name == whole.name;
  const bool brands =
      part.system.cpu_brand.empty() || part.system.cpu_brand == whole.system.cpu_brand;
  return names && brands &&
         std::all_of(part.answers.begin(), part.answers.end(),
                     [&](const CapturedAnswer& row) {
                       return whole.answer(row.answer.key) == row.answer.value;
                     }) &&
         std::all_of(part.facts.begin(), part.facts.end(), [&](const CapturedFact& row) {
           if (row.fact.starts_with("log.")) return true;  // about the text, not the device
           const CapturedFact* other = whole.fact(row.fact);
           return other != nullptr && other->value == row.value;
         });
}

class LogReader {
 public:
  LogReader(const Tables& tables, std::string_view name)
      : tables_(tables), name_(name), block_(tables, name) {}

  std::vector<Capture> read(std::string_view text) {
    for (const LogLine& line : LogLines(tables_.log_grammars()).read(text)) take(line);
    end_block();
    return std::move(captures_);
  }

 private:
  void take(const LogLine& line) {
    const Match found = match(tables_, line, block_.grammar());
    if (found.item == nullptr) {
      if (line.damaged || may_hide_an_item(tables_, line)) block_.mark_damaged(line.number);
      previous_ = {};
      return;
    }
    // Both streams of a program caught in one file print every line twice.
    const bool again = !line.damaged && line.prefix == previous_.prefix &&
                       line.text == previous_.text && found.item->form != "skipped";
    previous_ = line;
    if (again) return;
    if (block_.ends_before(line, *found.item)) end_block();
    // The time stamps of one function's lines have one shape. Where it changes, a line may have
    // been cut inside its stamp and glued to this one.
    const auto [shape, first] = stamps_.try_emplace(std::string(line.prefix), line.stamp);
    if (!first && shape->second != line.stamp) block_.mark_damaged(line.number);
    block_.add(line, *found.grammar, *found.item);
  }

  void end_block() {
    if (!block_.empty() && captures_.size() < kMostCaptures) {
      Capture capture = std::move(block_).finish();
      const bool known = std::any_of(captures_.begin(), captures_.end(), [&](const Capture& c) {
        return says_nothing_new(capture, c);
      });
      const bool says_something = !capture.name.empty() || !capture.answers.empty() ||
                                  !capture.facts.empty() || !capture.system.cpu_brand.empty();
      if (!known && says_something) captures_.push_back(std::move(capture));
    }
    block_ = LogBlock(tables_, name_);
    stamps_.clear();
  }

  const Tables& tables_;
  std::string_view name_;
  LogBlock block_;
  LogLine previous_;
  std::map<std::string, std::string> stamps_;  ///< by prefix, of this block
  std::vector<Capture> captures_;
};

}  // namespace

Result<std::vector<Capture>> read_log(const Tables& tables, std::string_view text,
                                      std::string_view name) {
  if (looks_like_json(text)) {
    return fail(Fault::input, "log-is-json", std::string(name),
                "the text is JSON, not the log of a program",
                "give a capture with --capture; of llama-bench, give what it writes to stderr");
  }
  std::vector<Capture> captures = LogReader(tables, name).read(text);
  if (captures.empty()) {
    return fail(Fault::input, "log-no-device", std::string(name),
                "no line that describes a Metal device was found",
                "give the start of the log, where the program names its device");
  }
  return captures;
}

}  // namespace metaldoctor
