#pragma once
#include <map>
#include <vector>

#include "scanners/code/decoder.h"
#include "scanners/code/program.h"

namespace metaldoctor {

/// Functions that are a few instructions without a branch: what the machine outliner makes of
/// register moves, prologues and epilogues, and small accessors of C++. They are executed in the
/// caller's place.
class Leaves {
 public:
  Leaves(const Program& program, Decoder& decoder) : program_(program), decoder_(decoder) {}
  /// The steps, the last of which returns or jumps on; null if the function is no leaf.
  const std::vector<Insn>* at(std::uint64_t address);

 private:
  std::vector<Insn> read(std::uint64_t address);

  const Program& program_;
  Decoder& decoder_;
  std::map<std::uint64_t, std::vector<Insn>> known_;
};

}  // namespace metaldoctor
