#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tables/tables.h"

namespace metaldoctor {

/// What one line of a log says under a prefix of the grammars.
struct LogLine {
  std::size_t number = 0;   ///< 1-based
  std::string_view prefix;  ///< of the grammar; empty = a damaged line that names none
  std::string text;         ///< after the prefix, colour codes removed, runs of blanks collapsed
  std::string stamp;        ///< the shape of what stood before it: "0.00.000.000 L "
  bool damaged = false;     ///< cut, glued to another line, or too long: no value may be read
  bool terminated = true;   ///< false: the end of the input, so the line may have been cut
};

/// Splits a log into the lines that the grammars know, in order, and those that look like a
/// damaged one of them; everything else is left out. A line may carry a time stamp, a level and a
/// process tag before the prefix. Where several prefixes stand in one line, each gives a damaged
/// LogLine. Lines end at LF, CRLF or CR (programs overwrite progress lines with CR).
class LogLines {
 public:
  explicit LogLines(const std::vector<LogGrammar>& grammars);
  std::vector<LogLine> read(std::string_view text) const;

 private:
  void read_line(std::string_view raw, std::size_t number, bool terminated,
                 std::vector<LogLine>& out) const;
  std::string_view prefix_at(std::string_view text) const;
  bool may_be_cut(std::string_view text) const;

  std::vector<std::string_view> prefixes_;  ///< longest first
};

}  // namespace metaldoctor
