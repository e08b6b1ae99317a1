// Branches, adrp, adr and literal loads among the words of arm64 code.
#include "scanners/code/candidate_scan.h"
#include "scanners/macho/arm64_words.h"

namespace metaldoctor {
namespace {

class Arm64Scan {
 public:
  Arm64Scan(const Program& program, CandidateSink& sink)
      : program_(program), sink_(sink), branches_(2), pages_(12), slots_(0) {
    for (const auto& [address, target] : program.stubs())
      if (sink.wants(target)) branches_.add(address);
    for (const auto& [address, target] : program.slots())
      if (sink.wants(target)) {
        pages_.add(address & ~std::uint64_t{0xfff});
        slots_.add(address);
      }
    for (const std::uint64_t place : sink.goals().places) {
      pages_.add(place & ~std::uint64_t{0xfff});
      slots_.add(place);
    }
    branches_.seal();
    pages_.seal();
    slots_.seal();
  }

  void run() {
    for (const Section& section : program_.image().sections())
      if (is_plain_code(section)) scan(section);
  }

 private:
  static constexpr std::size_t kBlock = 16;

  void scan(const Section& section) {
    const std::size_t count = section.bytes.size() / 4;
    sink_.add_words(count);
    if ((branches_.empty() && slots_.empty()) || count == 0) return;
    std::size_t i = 0;
    for (; i + kBlock <= count; i += kBlock)
      if (block_may_hit(section, i))
        for (std::size_t k = i; k < i + kBlock; ++k) look(section, k);
    for (; i < count; ++i) look(section, i);
  }

  /// The same tests as look(), without branches, for kBlock words at once: compilers turn this
  /// into vector code. May say yes too often, never no when look() would find something.
  bool block_may_hit(const Section& section, std::size_t first) const {
    std::uint32_t words[kBlock];
    std::memcpy(words, section.bytes.data() + first * 4, sizeof(words));
    const auto pc = static_cast<std::uint32_t>((section.address >> 2) + first);
    const std::uint64_t page_pc = section.address + first * 4;
    const auto page = static_cast<std::uint32_t>(page_pc >> 12);
    const auto at = static_cast<std::uint32_t>(page_pc);
    // A block may straddle a page; the range is widened by one page to stay on the safe side.
    const std::uint32_t page_low = pages_.low() - 1,
                        page_size = pages_.size() ? pages_.size() + 1 : 0;
    std::uint32_t hit = 0;
    for (std::size_t k = 0; k < kBlock; ++k) {
      const std::uint32_t word = words[k];
      const std::uint32_t branch =
          pc + static_cast<std::uint32_t>(k) +
          static_cast<std::uint32_t>(static_cast<std::int32_t>(word << 6) >> 6);
      hit |= ((word & 0x7c000000) == 0x14000000) & (branch - branches_.low() < branches_.size());
      const std::uint32_t imm21 = ((word >> 3) & 0x1ffffc) | ((word >> 29) & 3);
      const std::uint32_t target =
          page + static_cast<std::uint32_t>(static_cast<std::int32_t>(imm21 << 11) >> 11);
      hit |= ((word & 0x9f000000) == 0x90000000) & (target - page_low < page_size);
      const std::uint32_t here = at + static_cast<std::uint32_t>(k * 4);
      const std::uint32_t literal =
          here + static_cast<std::uint32_t>((static_cast<std::int32_t>(word << 8) >> 13) * 4);
      hit |= ((word & 0xff000000) == 0x58000000) & (literal - slots_.low() < slots_.size());
      const std::uint32_t near =
          here + static_cast<std::uint32_t>(static_cast<std::int32_t>(imm21 << 11) >> 11);
      hit |= ((word & 0x9f000000) == 0x10000000) & (near - slots_.low() < slots_.size());
    }
    return hit != 0;
  }

  void look(const Section& section, std::size_t index) {
    const auto word = *read_at<std::uint32_t>(section.bytes, index * 4);
    const std::uint64_t pc = section.address + index * 4;
    if ((word & 0x7c000000) == 0x14000000) {
      const std::uint64_t target = arm64::branch_target(word, pc);
      if (branches_.has(target)) sink_.branch(pc, *program_.stub(target));
    } else if (arm64::is_adrp(word)) {
      follow_page(section, index, arm64::rd(word), arm64::adrp_target(word, pc));
    } else if (arm64::is_ldr_literal_x(word)) {
      found_slot(pc, arm64::ldr_literal_target(word, pc));
    } else if (arm64::is_adr(word)) {
      found_slot(pc, arm64::adr_target(word, pc));
    }
  }

  /// After adrp xR: the loads and adds that use xR until it is overwritten by another adrp. The
  /// window is generous; compilers put the two a few words apart.
  void follow_page(const Section& section, std::size_t index, std::uint32_t reg,
                   std::uint64_t page) {
    constexpr std::size_t kWindow = 512;
    if (!pages_.has(page)) return;
    const std::size_t end = std::min(section.bytes.size() / 4, index + kWindow);
    for (std::size_t i = index + 1; i < end; ++i) {
      const auto word = *read_at<std::uint32_t>(section.bytes, i * 4);
      const std::uint64_t pc = section.address + i * 4;
      if (arm64::is_ldr_x(word) && arm64::rn(word) == reg) {
        found_slot(pc, page + arm64::ldr_x_offset(word));
        if (arm64::rd(word) == reg) return;
      } else if (arm64::is_add_x(word) && arm64::rn(word) == reg) {
        found_slot(pc, page + arm64::add_x_immediate(word));
        if (arm64::rd(word) == reg) return;
      } else if (arm64::is_adrp(word) && arm64::rd(word) == reg) {
        return;
      }
    }
    // The page may still be used further on; decoding will tell.
    if (end == index + kWindow) sink_.function_at(section.address + index * 4);
  }

  void found_slot(std::uint64_t pc, std::uint64_t slot) {
    if (!slots_.has(slot)) return;
    if (const Target* target = program_.slot(slot))
      sink_.slot(pc, *target);
    else
      sink_.function_at(pc);
  }

  const Program& program_;
  CandidateSink& sink_;
  AddressSet branches_, pages_, slots_;
};

}  // namespace

void scan_arm64(const Program& program, CandidateSink& sink) {
  Arm64Scan(program, sink).run();
}

}  // namespace metaldoctor
