#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "scanners/code/arch.h"
#include "scanners/macho/bytes.h"

namespace metaldoctor {

/// Instructions through LLVM MC: A64 (cpu apple-m1, +v8.5a) or x86-64. Costs a few hundred
/// microseconds to make and is kept for all functions of an audit. Not thread-safe.
class Decoder {
 public:
  static Result<Decoder> create(Arch::Kind kind);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// What is no instruction becomes a trap: data between functions, or padding.
  std::vector<Insn> decode(Bytes code, std::uint64_t address);
  /// Appends one instruction's steps and gives its length, at least 1. `code` is not empty.
  std::uint8_t decode_one(Bytes code, std::uint64_t address, std::vector<Insn>& out);

 private:
  struct Impl;
  explicit Decoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace metaldoctor
