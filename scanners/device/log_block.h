#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "scanners/device/capture.h"
#include "scanners/device/log_lines.h"
#include "scanners/device/log_values.h"
#include "tables/tables.h"

namespace metaldoctor {

/// What a program printed about one device, gathered line by line and turned into a capture.
class LogBlock {
 public:
  LogBlock(const Tables& tables, std::string_view file) : tables_(&tables), file_(file) {}

  /// Whether this line can only belong to a later device: it opens a block and this one has
  /// answers already, or it says again what a block says once.
  bool ends_before(const LogLine& line, const LogGrammar::Item& item) const;
  void add(const LogLine& line, const LogGrammar& grammar, const LogGrammar::Item& item);
  /// A line was lost here, so that nothing follows from what is absent.
  void mark_damaged(std::size_t line);
  /// Where two grammars know a line, the one this block was read by so far is meant.
  const LogGrammar* grammar() const { return grammar_; }
  bool empty() const { return empty_; }
  Capture finish() &&;

 private:
  struct Ladder {  ///< one line of families, asked from the highest member down
    std::int64_t from = 0, to = 0;
    std::optional<std::int64_t> highest;
    std::size_t line = 0;
  };
  using Reader = bool (LogBlock::*)(const LogLine&, const LogGrammar::Item&, std::string_view);
  struct Form;
  static const Form* form(std::string_view name);

  bool read_flag(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_bool(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_integer(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_megabytes(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_family(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_device(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_used_device(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_cpu(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_skipped(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_quoted(const LogLine& line, const LogGrammar::Item& item, std::string_view said);
  bool read_banner(const LogLine& line, const LogGrammar::Item& item, std::string_view said);

  void add_device(const LogDevice& device, bool listed, std::size_t line);
  void yield(const LogGrammar::Item& item, Value value, std::size_t line);
  void set_answer(const QueryKey& key, Value value, Evidence evidence, std::size_t line);
  void set_fact(std::string fact, Value value, std::size_t line);
  void note_progress(const LogGrammar::Item& item, std::size_t line);
  void learn_ladders(const LogGrammar& grammar);
  bool families_printed() const;
  void settle_name();
  void settle_families();
  void settle_ladder(std::string_view name, const Ladder& ladder);
  void settle_absent(std::string_view name, const Ladder& ladder, const std::string& doubt);
  void settle_implied(const Ladder& ladder);
  void settle_unknown(const std::string& doubt);
  std::string doubt_of_absence() const;
  CaptureSource source(std::size_t line) const;

  const Tables* tables_;
  std::string file_;
  Capture capture_;
  std::map<std::string, Ladder, std::less<>> ladders_;
  std::set<std::pair<std::string_view, std::string>> once_;  ///< prefix; item key or family line
  std::set<std::string_view> answered_under_;                ///< prefixes of what opens no block
  std::set<std::string> chosen_names_, listed_names_;
  std::set<std::string> contradicted_;  ///< facts and queries given two values
  const LogGrammar* grammar_ = nullptr;
  bool empty_ = true;
  bool started_ = false;    ///< the line before the families was read
  bool closed_ = false;     ///< a line after the families was read
  bool completed_ = false;  ///< the last line of the block was read
  std::size_t closing_line_ = 0;
  std::optional<std::size_t> damaged_;   ///< the first damaged line
  std::optional<std::size_t> doubtful_;  ///< the first where a family may have been lost
};

}  // namespace metaldoctor
