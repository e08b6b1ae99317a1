#pragma once
#include "scanners/macho/fixups.h"

namespace metaldoctor {

/// Runs the rebase and bind opcodes of LC_DYLD_INFO. Internal to scanners/macho.
class OpcodeReader {
 public:
  explicit OpcodeReader(const Image& image);

  /// Fills imports and binds of `out`, sorted.
  Result<void> read_binds(Fixups& out);
  /// Reports every slot that is rebased.
  Result<void> walk_rebases(const std::function<void(std::uint64_t slot)>& visit);

 private:
  enum class Stream { bind, weak, lazy };
  Result<void> run_binds(Stream stream, Range range, Fixups& out);
  Result<void> run_rebases(Range range, const std::function<void(std::uint64_t slot)>& visit);

  struct State;
  /// Calls `visit` for `count` slots, `stride` bytes apart, from the state's position, after
  /// checking that the last lies in the segment too.
  Result<void> repeat(State& state, std::uint64_t count, std::uint64_t skip,
                      const std::function<void(std::uint64_t slot)>& visit);
  Result<void> set_segment(State& state, unsigned index, std::uint64_t offset);
  Result<void> bind_step(State& state, std::uint8_t opcode, std::uint8_t immediate,
                         const std::function<void(std::uint64_t)>& visit);
  Result<void> rebase_step(State& state, std::uint8_t opcode, std::uint8_t immediate,
                           const std::function<void(std::uint64_t)>& visit);
  tl::unexpected<Diagnostic> bad(const State& state, std::string what) const;

  const Image& image_;
  std::uint64_t budget_;  ///< slots that may still be visited: a damaged stream repeats itself
};

}  // namespace metaldoctor
