#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "scanners/code/arm64_insn.h"
#include "scanners/macho/bytes.h"

namespace metaldoctor {

/// A64 instructions through LLVM MC (cpu apple-m1, +v8.5a). Costs a few hundred microseconds to
/// make and is kept for all functions of an audit. Not thread-safe.
class Decoder {
 public:
  static Result<Decoder> create();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// A word that is no instruction becomes a trap: data between functions, or padding.
  Insn decode(std::uint32_t word, std::uint64_t address);
  std::vector<Insn> decode(Bytes code, std::uint64_t address);

 private:
  struct Impl;
  explicit Decoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace metaldoctor
