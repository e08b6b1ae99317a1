#include "scanners/code/fields.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>

#include "scanners/code/candidate_scan.h"
#include "scanners/macho/arm64_words.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kMaxFunctions = 256;  // traced in search of readers
constexpr std::size_t kMinShared = 3;       // fields that prove an accessor
constexpr std::size_t kMinSame = 2;         // fields that prove an object

/// ldr/str (unsigned offset) of a general register: size class, load or store, byte offset.
struct Access {
  unsigned size = 0;
  bool load = false;
  std::int64_t offset = 0;
};
std::optional<Access> access_of(std::uint32_t word) {
  if ((word & 0x3f000000) != 0x39000000) return std::nullopt;
  const unsigned shift = word >> 30, opc = (word >> 22) & 3;
  if (opc > 1) return std::nullopt;
  return Access{1u << shift, opc == 1, static_cast<std::int64_t>(((word >> 10) & 0xfff) << shift)};
}

class ReaderSearch {
 public:
  ReaderSearch(const Program& program, const std::function<FunctionTrace(std::uint64_t)>& trace,
               std::vector<KeptField>& fields)
      : program_(program), trace_(trace), fields_(fields) {}

  bool run() {
    find_accessors();
    index_fields();
    for (const Section& section : program_.image().sections())
      if (section.is_code()) scan(section);
    std::size_t traced = 0;
    for (const auto& [function, hits] : hits_)
      if (is_candidate(hits) && ++traced <= kMaxFunctions) look(function);
    accept_accessors();
    for (KeptField& field : fields_) {
      std::sort(field.readers.begin(), field.readers.end());
      field.readers.erase(std::unique(field.readers.begin(), field.readers.end()),
                          field.readers.end());
    }
    return traced <= kMaxFunctions;
  }

 private:
  /// What the words of one function hold.
  struct Hits {
    std::set<std::size_t> direct;   ///< fields
    std::set<std::int64_t> shifts;  ///< of accessors whose results might be read
    std::set<std::int64_t> called;  ///< shifts of accessors that are called
    bool global = false;
  };

  void find_accessors() {
    constexpr std::uint32_t kRet = 0xd65f03c0;
    for (const std::uint64_t start : program_.functions().addresses) {
      const auto add = program_.image().value_at<std::uint32_t>(start);
      if (!add || !arm64::is_add_x(*add) || arm64::rd(*add) != 0 || arm64::rn(*add) != 0) continue;
      if (program_.image().value_at<std::uint32_t>(start + 4) != kRet) continue;
      accessors_.emplace(start, static_cast<std::int64_t>(arm64::add_x_immediate(*add)));
    }
  }

  void index_fields() {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].global) {
        pages_.insert(static_cast<std::uint64_t>(fields_[i].offset) & ~std::uint64_t{0xfff});
        continue;
      }
      wanted_.emplace(std::pair(std::int64_t{fields_[i].size}, fields_[i].offset), i);
      for (const auto& [start, shift] : accessors_) shifts_.insert(shift);
    }
    std::erase_if(shifts_, [&](std::int64_t shift) {
      return shift == 0 || std::none_of(fields_.begin(), fields_.end(),
                                        [&](const KeptField& f) { return f.offset >= shift; });
    });
    for (const auto& [start, shift] : accessors_)
      if (shifts_.count(shift)) called_.add(start);
    for (const std::uint64_t page : pages_) loaded_pages_.add(page);
    called_.seal();
    loaded_pages_.seal();
    for (const auto& [key, field] : wanted_) {
      mark(key.first, key.second);
      for (const std::int64_t shift : shifts_) mark(key.first, key.second - shift);
    }
  }

  /// A table by scaled offset: one look decides for nearly every word of the image.
  void mark(std::int64_t size, std::int64_t offset) {
    const auto log = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(size)));
    if (offset < 0 || log > 3 || (offset >> log) >= 4096 || (offset & (size - 1))) return;
    table_[log][static_cast<std::size_t>(offset >> log)] = true;
  }

  void scan(const Section& section) {
    for (std::uint64_t at = 0; at + 4 <= section.bytes.size(); at += 4) {
      const auto word = *read_at<std::uint32_t>(section.bytes, at);
      const std::uint64_t pc = section.address + at;
      if (const auto access = access_of(word)) {
        const auto log = static_cast<std::size_t>(word >> 30);
        if (table_[log][(word >> 10) & 0xfff]) note(pc, *access);
      } else if (arm64::is_bl(word) && !called_.empty()) {
        const std::uint64_t target = arm64::branch_target(word, pc);
        if (called_.has(target)) hits(pc).called.insert(accessors_.at(target));
      } else if (arm64::is_adrp(word) && !pages_.empty() &&
                 loaded_pages_.has(arm64::adrp_target(word, pc))) {
        hits(pc).global = true;
      }
    }
  }

  void note(std::uint64_t pc, const Access& access) {
    const auto direct = wanted_.find({std::int64_t{access.size}, access.offset});
    Hits& found = hits(pc);
    if (direct != wanted_.end()) {
      KeptField& field = fields_[direct->second];
      if (access.load)
        found.direct.insert(direct->second);
      else if (current_ != field.function)
        field.stored_elsewhere = true;
    }
    if (!access.load) return;
    for (const std::int64_t shift : shifts_)
      if (wanted_.count({std::int64_t{access.size}, access.offset + shift}))
        found.shifts.insert(shift);
  }

  Hits& hits(std::uint64_t pc) {
    if (pc < current_ || pc >= current_end_)
      std::tie(current_, current_end_) = program_.functions().around(program_.image(), pc);
    return hits_[current_];
  }

  bool is_candidate(const Hits& hits) const {
    if (hits.global || hits.direct.size() >= kMinSame) return true;
    return std::any_of(hits.shifts.begin(), hits.shifts.end(),
                       [&](std::int64_t shift) { return hits.called.count(shift) != 0; });
  }

  std::optional<std::size_t> field(const LoadEvent& load, std::int64_t shift) const {
    const auto found = wanted_.find({std::int64_t{load.size}, load.offset + shift});
    return found == wanted_.end() ? std::nullopt : std::optional(found->second);
  }

  void look(std::uint64_t function) {
    const FunctionTrace trace = trace_(function);
    std::map<std::uint32_t, std::set<std::size_t>> by_base;
    for (const LoadEvent& load : trace.loads)
      if (const auto found = field(load, 0); found && load.base) by_base[load.base].insert(*found);
    for (const LoadEvent& load : trace.loads) {
      if (load.base == 0) {
        global_load(function, load);
        continue;
      }
      if (const std::int64_t shift = accessor_shift(trace, load.base)) {
        if (const auto found = field(load, shift)) via_[shift].emplace_back(*found, load.address);
      } else if (const auto found = field(load, 0); found &&
                                                    by_base[load.base].size() >= kMinSame &&
                                                    fields_[*found].function != function) {
        fields_[*found].readers.push_back(load.address);
      }
    }
  }

  void global_load(std::uint64_t function, const LoadEvent& load) {
    for (KeptField& field : fields_)
      if (field.global && field.offset == load.offset && field.function != function)
        field.readers.push_back(load.address);
  }

  /// How far the accessor moved the pointer that is `base`; 0 if it came from elsewhere.
  std::int64_t accessor_shift(const FunctionTrace& trace, std::uint32_t base) const {
    const Base& from = trace.values.base(base);
    if (from.kind != Base::Kind::result || from.at < trace.begin || from.at >= trace.end) return 0;
    const std::size_t index = step_at(trace.code, from.at);
    if (index == trace.code.size()) return 0;
    const Insn& call = trace.code[index];
    const auto found = accessors_.find(call.target);
    return call.op == Op::bl && found != accessors_.end() ? found->second : 0;
  }

  void accept_accessors() {
    for (const auto& [shift, loads] : via_) {
      std::set<std::size_t> distinct;
      for (const auto& [index, address] : loads) distinct.insert(index);
      if (distinct.size() < kMinShared) continue;
      for (const auto& [index, address] : loads) fields_[index].readers.push_back(address);
    }
  }

  const Program& program_;
  const std::function<FunctionTrace(std::uint64_t)>& trace_;
  std::vector<KeptField>& fields_;
  std::map<std::uint64_t, std::int64_t> accessors_;  ///< function -> shift
  std::set<std::int64_t> shifts_;
  std::set<std::uint64_t> pages_;
  AddressSet called_{2}, loaded_pages_{12};
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> wanted_;  ///< size, offset -> field
  std::array<std::array<bool, 4096>, 4> table_{};
  std::map<std::uint64_t, Hits> hits_;
  std::uint64_t current_ = 1, current_end_ = 0;
  std::map<std::int64_t, std::vector<std::pair<std::size_t, std::uint64_t>>> via_;
};

}  // namespace

bool find_readers(const Program& program, const std::function<FunctionTrace(std::uint64_t)>& trace,
                  std::vector<KeptField>& fields) {
  // x86-64 has no words to look at; a note of the audit says so.
  if (program.arch().kind != Arch::Kind::arm64) return true;
  return fields.empty() || ReaderSearch(program, trace, fields).run();
}

}  // namespace metaldoctor
