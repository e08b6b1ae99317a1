// x86-64 instructions have no fixed places, but every way to a slot or stub is a 32-bit
// displacement from the end of its field: one is looked for at every byte. What only looks like one
// costs the decoding of a function, nothing else.
#include "scanners/code/candidate_scan.h"

namespace metaldoctor {
namespace {

class X86Scan {
 public:
  X86Scan(const Program& program, CandidateSink& sink)
      : program_(program), sink_(sink), branches_(0), slots_(0) {
    for (const auto& [address, target] : program.stubs())
      if (sink.wants(target)) branches_.add(address);
    for (const auto& [address, target] : program.slots())
      if (sink.wants(target)) slots_.add(address);
    for (const std::uint64_t place : sink.goals().places) slots_.add(place);
    branches_.seal();
    slots_.seal();
  }

  void run() {
    for (const Section& section : program_.image().sections())
      if (is_plain_code(section)) scan(section);
  }

 private:
  static constexpr std::size_t kBlock = 64, kField = 4;

  void scan(const Section& section) {
    const std::size_t size = section.bytes.size();
    sink_.add_words(size / 4);
    if ((branches_.empty() && slots_.empty()) || size < kField) return;
    std::size_t at = 0;
    for (; at + kBlock + kField <= size; at += kBlock)
      if (block_may_hit(section, at))
        for (std::size_t k = at; k < at + kBlock; ++k) look(section, k);
    for (; at + kField <= size; ++at) look(section, at);
  }

  /// The range tests of look() for 64 displacements, without branches: vector code. Modulo 2^32, so
  /// it may say yes too often.
  bool block_may_hit(const Section& section, std::size_t first) const {
    std::uint32_t hit = 0;
    for (std::uint32_t phase = 0; phase < kField; ++phase) {
      std::uint32_t fields[kBlock / kField];
      std::memcpy(fields, section.bytes.data() + first + phase, sizeof(fields));
      const auto end = static_cast<std::uint32_t>(section.address + first + phase + kField);
      for (std::uint32_t k = 0; k < kBlock / kField; ++k) {
        const std::uint32_t target = end + k * kField + fields[k];
        hit |= target - branches_.low() < branches_.size();
        hit |= target - slots_.low() < slots_.size();
      }
    }
    return hit != 0;
  }

  void look(const Section& section, std::size_t at) {
    const auto displacement = *read_at<std::int32_t>(section.bytes, at);
    const std::uint64_t pc = section.address + at;
    const std::uint64_t target =
        pc + kField + static_cast<std::uint64_t>(std::int64_t{displacement});
    if (branches_.has(target)) {
      sink_.branch(pc, *program_.stub(target));
    } else if (slots_.has(target)) {
      if (const Target* slot = program_.slot(target))
        sink_.slot(pc, *slot);
      else
        sink_.function_at(pc);
    }
  }

  const Program& program_;
  CandidateSink& sink_;
  AddressSet branches_, slots_;
};

}  // namespace

void scan_x86(const Program& program, CandidateSink& sink) {
  X86Scan(program, sink).run();
}

}  // namespace metaldoctor
