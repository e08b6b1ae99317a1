#include <fmt/format.h>

#include <algorithm>

#include "scanners/device/log_block.h"

namespace metaldoctor {
namespace {

QueryKey supports(std::int64_t family) {
  return {"supportsFamily:", {family}};
}

}  // namespace

/// A program may list devices and pick one. Two picks in one block cannot both be meant.
void LogBlock::settle_name() {
  const auto& names = chosen_names_.empty() ? listed_names_ : chosen_names_;
  if (names.size() == 1) capture_.name = *names.begin();
}

/// Why a ladder without a line was not necessarily answered no throughout; empty = it was.
/// ggml asks a ladder from the top and prints the first yes, so silence means no, provided that
/// no line was lost.
std::string LogBlock::doubt_of_absence() const {
  if (doubtful_) return fmt::format("line {} is damaged, so lines may be missing", *doubtful_);
  if (!started_) return "the line that stands before the families is missing";
  for (const auto& [name, ladder] : ladders_) {
    const Family* family = ladder.highest ? tables_->family(*ladder.highest) : nullptr;
    if (family == nullptr) continue;
    for (const std::string& implied : family->implies) {
      const Family* other = tables_->family(implied);
      const auto it = other ? ladders_.find(other->line) : ladders_.end();
      if (it != ladders_.end() && !it->second.highest) {
        return fmt::format("{} includes {}, yet there is no {} line: not every line is printed",
                           family->short_name, implied, other->line);
      }
    }
  }
  if (!closed_) return "no line that stands after the families is there";
  return {};
}

/// A line of families was printed: its highest member is yes, those the program asked before it
/// are no, and those below it follow.
void LogBlock::settle_ladder(std::string_view name, const Ladder& ladder) {
  const std::int64_t highest = *ladder.highest;
  if (tables_->family(highest) == nullptr) {
    // A broad override says yes to numbers that no family has; from those nothing follows.
    set_answer(supports(highest), true, Evidence::measured, ladder.line);
  }
  for (const Family& family : tables_->families()) {
    if (family.line != name) continue;
    if (family.value > highest && family.value <= ladder.from) {
      set_answer(supports(family.value), false, Evidence::measured, ladder.line);
    } else if (family.value == highest) {
      set_answer(supports(family.value), true, Evidence::measured, ladder.line);
    } else if (family.value < highest && tables_->family(highest) != nullptr) {
      set_answer(supports(family.value), true, Evidence::inferred, ladder.line);
    }
  }
}

void LogBlock::settle_absent(std::string_view name, const Ladder& ladder,
                             const std::string& doubt) {
  if (!doubt.empty()) return;
  for (const Family& family : tables_->families()) {
    if (family.line != name || family.value < ladder.to || family.value > ladder.from) continue;
    // `read`: the program's source prints a line for every class that has a family, and a later
    // line shows that it got past this class.
    set_answer(supports(family.value), false, Evidence::read, closing_line_);
  }
}

/// What a printed family includes of other lines, where those lines say nothing themselves.
void LogBlock::settle_implied(const Ladder& ladder) {
  const Family* family = ladder.highest ? tables_->family(*ladder.highest) : nullptr;
  if (family == nullptr) return;
  for (const std::string& name : family->implies) {
    const Family* implied = tables_->family(name);
    if (implied == nullptr || capture_.find(supports(implied->value)) != nullptr) continue;
    set_answer(supports(implied->value), true, Evidence::inferred, ladder.line);
  }
}

void LogBlock::settle_unknown(const std::string& doubt) {
  if (!started_ && !families_printed()) return;  // says nothing about families at all
  for (const Family& family : tables_->families()) {
    const auto it = ladders_.find(family.line);
    if (it == ladders_.end() || capture_.find(supports(family.value))) continue;
    const auto& highest = it->second.highest;
    capture_.unknown.push_back(
        {supports(family.value),
         highest ? fmt::format("the log gives {}, which no family has", *highest) : doubt});
  }
}

void LogBlock::settle_families() {
  const std::string doubt = doubt_of_absence();
  for (const auto& [name, ladder] : ladders_) {
    if (ladder.highest) {
      settle_ladder(name, ladder);
    } else {
      settle_absent(name, ladder, doubt);
    }
  }
  for (const auto& [name, ladder] : ladders_) settle_implied(ladder);
  settle_unknown(doubt);
}

Capture LogBlock::finish() && {
  settle_name();
  settle_families();
  const bool described = started_ || families_printed();
  if (damaged_) {
    set_fact("log.damaged_line", static_cast<std::int64_t>(*damaged_), *damaged_);
  }
  if (described && !closed_ && !completed_) {
    const std::size_t last = capture_.answers.empty() ? 1 : *capture_.answers.back().source.line;
    set_fact("log.cut_short", true, last);
  }
  return std::move(capture_);
}

}  // namespace metaldoctor
