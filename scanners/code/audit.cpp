#include "scanners/code/audit.h"

#include <fmt/format.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <array>
#include <set>

#include "scanners/code/discovery.h"
#include "scanners/code/fields.h"
#include "scanners/code/gates.h"
#include "scanners/code/ladders.h"
#include "scanners/code/sites.h"
#include "scanners/macho/code_signature.h"

namespace metaldoctor {
namespace {

// Far above any real image; damaged or hostile ones stop here.
constexpr std::size_t kMaxSites = 50'000, kMaxGates = 8192, kMaxLadders = 1024;
constexpr std::string_view kTooManyGates = "there are more gates than are listed";

constexpr std::array<std::string_view, 13> kPlatforms = {"",
                                                         "macOS",
                                                         "iOS",
                                                         "tvOS",
                                                         "watchOS",
                                                         "bridgeOS",
                                                         "Mac Catalyst",
                                                         "iOS simulator",
                                                         "tvOS simulator",
                                                         "watchOS simulator",
                                                         "DriverKit",
                                                         "visionOS",
                                                         "visionOS simulator"};

std::string build_text(const BuildVersion& build) {
  const std::string platform = build.platform && build.platform < kPlatforms.size()
                                   ? std::string(kPlatforms[build.platform])
                                   : fmt::format("platform {}", build.platform);
  return fmt::format("{} {}, SDK {}", platform, to_string(build.minimum), to_string(build.sdk));
}

class ImageAudit {
 public:
  ImageAudit(const Image& image, const Fixups& fixups, const Vocabulary& words,
             std::unique_ptr<Decoder>& decoder, Findings& out)
      : image_(image), fixups_(fixups), words_(words), decoder_(decoder), out_(out) {}

  Result<void> run() {
    auto program = Program::read(image_, fixups_, words_);
    if (!program) return tl::unexpected(program.error());
    bench_.emplace(std::move(*program), decoder_);
    Discovery discovery(*bench_);
    auto done = discovery.run(
        [&](const FunctionTrace& trace, bool again) { return part_findings(trace, again); });
    if (!done) return done;
    out_.functions = bench_->program().functions().addresses.size();
    out_.words = discovery.scanned().words;
    out_.counted = discovery.scanned().counted;
    merge(discovery.called());
    if (!discovery.complete()) note("callers of private wrappers were followed six levels up only");
    if (const std::size_t words = bench_->program().undecoded_stub_words())
      note(fmt::format("{} words of __objc_stubs belong to no known form of stub", words));
    if (auto ok = readers(); !ok) return ok;
    hidden();
    name_functions();
    out_.functions_decoded = bench_->traced();
    return {};
  }

 private:
  /// What one function contributes; replaced when it is traced again.
  struct FunctionFindings {
    std::vector<QuerySite> sites;
    std::vector<Ladder> ladders;
    std::vector<FoundGate> gates;
    std::map<std::string, std::size_t> counted, unproven;
    std::vector<std::string> notes;
  };

  Result<void> part_findings(const FunctionTrace& trace, bool again) {
    FunctionFindings& into = functions_[trace.function];
    sites_ -= again ? into.sites.size() : 0;
    if (again) into = {};
    for (const CallEvent& event : trace.calls) site(trace, event, into);
    if (sites_ > kMaxSites)
      return fail(Fault::input, "audit-too-many-sites", image_.where(),
                  fmt::format("expected at most {} query sites in one image", kMaxSites));
    const auto ladders = find_ladders(trace, bench_->expressions());
    for (const LadderRun& run : ladders) ladder(trace, run, into);
    auto gates = find_gates(bench_->program(), trace, bench_->expressions(), ladders,
                            [&](std::uint64_t address) { return placeholder(address); });
    into.gates.insert(into.gates.end(), std::make_move_iterator(gates.gates.begin()),
                      std::make_move_iterator(gates.gates.end()));
    if (gates.cut)
      into.notes.push_back(
          fmt::format("function {:#x}: there are more gates than are listed", trace.function));
    if (!trace.exact)
      into.notes.push_back(
          fmt::format("function {:#x}: loops are nested too deep or the function is "
                      "too large; values were forgotten there",
                      trace.function));
    return {};
  }

  void site(const FunctionTrace& trace, const CallEvent& event, FunctionFindings& into) {
    const SiteKind kind = site_kind(event);
    if (kind.kind == SiteKind::Kind::counted) ++into.counted[std::string(kind.name)];
    if (kind.kind == SiteKind::Kind::unproven) ++into.unproven[std::string(kind.name)];
    if (kind.kind != SiteKind::Kind::site) return;
    into.sites.push_back(make_site(bench_->program(), trace, event, identity(), out_.image.arch));
    ++sites_;
  }

  /// A wrapper that the image calls asks for its callers: they count, it does not.
  void merge(const std::set<std::uint64_t>& called) {
    for (auto& [function, from] : functions_) {
      const Summary* summary = bench_->program().summary(function);
      if (summary && summary->thunk && called.count(function)) continue;  // its callers ask
      for (QuerySite& site : from.sites) {
        if (called.count(function) && site.arguments.from_caller) site.counts = false;
        out_.sites.push_back(std::move(site));
      }
      for (Ladder& ladder : from.ladders)
        if (out_.ladders.size() < kMaxLadders)
          out_.ladders.push_back(std::move(ladder));
        else
          note("there are more ladders than are listed");
      add_gates(std::move(from.gates), false);
      for (const auto& [query, count] : from.counted) out_.counted[query] += count;
      for (const auto& [query, count] : from.unproven) out_.unproven[query] += count;
      for (std::string& text : from.notes) note(std::move(text));
    }
  }

  /// `of_reader`: the trace took what other functions stored for granted, so its gates are likely,
  /// and those that were found without that stay.
  void add_gates(std::vector<FoundGate> gates, bool of_reader) {
    for (FoundGate& one : gates) {
      if (out_.gates.size() > kMaxGates) return note(std::string(kTooManyGates));
      if (!gate_ids_.insert(one.gate.id).second) continue;
      if (of_reader) one.gate.certainty = Certainty::likely;
      out_.gates.push_back(std::move(one.gate));
      gate_exprs_.push_back(one.expr);
    }
  }

  void note(std::string text) {
    if (std::find(out_.notes.begin(), out_.notes.end(), text) == out_.notes.end())
      out_.notes.push_back(std::move(text));
  }

  void ladder(const FunctionTrace& trace, const LadderRun& run, FunctionFindings& into) {
    Ladder ladder;
    ladder.query = trace.calls[run.calls.front()].target->selector->query;
    ladder.first = run.first;
    ladder.last = run.last;
    ladder.address = trace.calls[run.calls.front()].address;
    ladder.function = placeholder(trace.function);
    for (const std::size_t call : run.calls) ladder.sites.push_back(trace.calls[call].address);
    for (const StoreEvent& store : trace.stores)
      if (const auto shift = kept_by(trace, run, store)) {
        const std::string where =
            store.base
                ? fmt::format("field [{}]+{:#x}", trace.values.describe(store.base), store.offset)
                : fmt::format("global {:#x}", static_cast<std::uint64_t>(store.offset));
        ladder.kept.push_back({store.base == 0, store.offset, store.size, trace.function});
        ladder.uses.push_back(*shift ? fmt::format("{} (value - {})", where, *shift) : where);
      }
    into.ladders.push_back(std::move(ladder));
  }

  /// How much lower than the ladder's values the stored ones are; none if they are others.
  static std::optional<std::int64_t> kept_by(const FunctionTrace& trace, const LadderRun& run,
                                             const StoreEvent& store) {
    if (store.value.kind != AbstractValue::Kind::set) return std::nullopt;
    const auto& numbers = trace.values.set(store.value.id);  // sorted
    const std::int64_t low = std::min(run.first, run.last), high = std::max(run.first, run.last);
    const bool whole =
        numbers.size() == run.calls.size() && numbers.back() - numbers.front() == high - low;
    return whole ? std::optional(low - numbers.front()) : std::nullopt;
  }

  /// Who reads the fields and globals that keep answers, in the functions that ask nothing.
  Result<void> readers() {
    std::vector<KeptField> fields;
    for (const Gate& gate : out_.gates)
      if (gate.where.kind == Gate::Where::Kind::field && gate.where.object)
        fields.push_back(
            {false, gate.where.offset, gate.where.size, gate.function_address, {}, false});
      else if (gate.where.kind == Gate::Where::Kind::global)
        fields.push_back({true,
                          static_cast<std::int64_t>(gate.where.address),
                          gate.where.size,
                          gate.function_address,
                          {},
                          false});
    for (const Ladder& ladder : out_.ladders)
      for (const Ladder::Kept& kept : ladder.kept)
        fields.push_back({kept.global, kept.offset, kept.size, kept.function, {}, false});
    if (fields.empty()) return {};
    if (!image_.is_arm64()) note("who reads the flags is looked for in arm64 code only");
    std::optional<Diagnostic> failure;
    const bool all = find_readers(
        bench_->program(),
        [&](std::uint64_t function) {
          auto trace = bench_->trace(function);
          if (trace) return std::move(*trace);
          failure = trace.error();
          return FunctionTrace{};
        },
        fields);
    if (failure) return tl::unexpected(*failure);
    if (!all) note("more functions may read the flags than were looked into");
    hand_back(fields);
    return gates_of_readers();
  }

  /// What hangs on a flag in the functions that read it: their gates, with the flag's expression
  /// for what they load.
  Result<void> gates_of_readers() {
    struct Reader {
      KnownLoads loads;
      std::vector<std::size_t> flags;
    };
    std::map<std::uint64_t, Reader> readers;
    for (std::size_t i = 0; i < out_.gates.size(); ++i)
      for (const std::uint64_t address : out_.gates[i].readers) {
        Reader& reader = readers[bench_->program().functions().around(image_, address).first];
        reader.loads.emplace(address, gate_exprs_[i]);
        if (reader.flags.empty() || reader.flags.back() != i) reader.flags.push_back(i);
      }
    for (const auto& [function, reader] : readers) {
      const auto trace = bench_->trace(function, &reader.loads);
      if (!trace) return tl::unexpected(trace.error());
      const std::size_t first = out_.gates.size();
      auto found = find_gates(bench_->program(), *trace, bench_->expressions(),
                              find_ladders(*trace, bench_->expressions()),
                              [&](std::uint64_t address) { return placeholder(address); });
      add_gates(std::move(found.gates), true);
      for (const std::size_t flag : reader.flags)
        for (std::size_t fed = first; fed < out_.gates.size(); ++fed)
          if (uses(gate_exprs_[fed], gate_exprs_[flag]))
            out_.gates[flag].feeds.push_back(out_.gates[fed].id);
    }
    return {};
  }

  /// Whether all answers of `part` are in `whole`.
  bool uses(ExprId whole, ExprId part) {
    const auto all = bench_->expressions().answers(whole),
               some = bench_->expressions().answers(part);
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
  }

  void hand_back(const std::vector<KeptField>& fields) {
    std::size_t next = 0;
    for (Gate& gate : out_.gates) {
      const bool field = gate.where.kind == Gate::Where::Kind::field && gate.where.object;
      if (!field && gate.where.kind != Gate::Where::Kind::global) continue;
      gate.readers = fields[next].readers;
      // A callee could have changed it, but no other function has a store of that size and offset.
      if (field && gate.changed_by_calls && !fields[next].stored_elsewhere &&
          gate.expr.find("unknown(") == std::string::npos)
        gate.certainty = Certainty::certain;
      ++next;
    }
    for (Ladder& ladder : out_.ladders)
      for (std::size_t i = 0; i < ladder.kept.size(); ++i, ++next)
        ladder.readers.insert(ladder.readers.end(), fields[next].readers.begin(),
                              fields[next].readers.end());
  }

  /// Whether a call with this selector was found, listed or only counted.
  bool is_asked(std::string_view selector) const {
    const auto named = [&](const QuerySite& site) {
      return site.selector == selector || site.query == selector;
    };
    const std::string name(selector);
    return std::ranges::any_of(out_.sites, named) || out_.counted.contains(name) ||
           out_.unproven.contains(name);
  }

  /// Questions whose selector's text is in a string section and that no call was found to ask.
  void hidden() {
    std::set<std::string_view> texts;
    for (const std::string_view text : bench_->program().selectors_in_text()) texts.insert(text);
    for (const std::string_view text : texts) {
      if (!bench_->program().reaches(text)) {
        out_.hidden.push_back({std::string(text),
                               "its text is in the image, but no stub, selector slot or registered "
                               "selector leads to it"});
      } else if (!is_asked(text)) {
        out_.hidden.push_back({std::string(text),
                               "a stub, selector slot or registered selector leads to it, but no "
                               "call with it was found"});
      }
    }
  }

  // Names are looked up once, at the end: until then functions are written as placeholders.
  std::string placeholder(std::uint64_t address) {
    wanted_.insert(address);
    return fmt::format("\x01{:x}", address);
  }

  void name_functions() {
    for (const QuerySite& site : out_.sites) wanted_.insert(site.function_address);
    for (const Gate& gate : out_.gates) wanted_.insert(gate.function_address);
    const std::vector<std::uint64_t> addresses(wanted_.begin(), wanted_.end());
    const auto names = function_names(image_, addresses);
    std::map<std::string, std::string> by_placeholder;
    std::map<std::uint64_t, std::string> by_address;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::string name =
          names[i].empty() ? fmt::format("function {:#x}", addresses[i]) : names[i];
      by_placeholder[fmt::format("\x01{:x}", addresses[i])] = name;
      by_address[addresses[i]] = name;
    }
    for (QuerySite& site : out_.sites) site.function = by_address[site.function_address];
    for (Ladder& ladder : out_.ladders) ladder.function = by_placeholder[ladder.function];
    for (Gate& gate : out_.gates) {
      gate.function = by_address[gate.function_address];
      for (GateSide* side : {&gate.if_true, &gate.if_false})
        for (std::string& call : side->calls)
          if (call.starts_with('\x01')) call = by_placeholder[call];
    }
  }

  std::string identity() const {
    return out_.image.uuid.empty() ? fmt::format("{:016x}", out_.image.xxh3) : out_.image.uuid;
  }

  const Image& image_;
  const Fixups& fixups_;
  const Vocabulary& words_;
  std::unique_ptr<Decoder>& decoder_;
  Findings& out_;
  std::optional<Workbench> bench_;
  std::map<std::uint64_t, FunctionFindings> functions_;
  std::size_t sites_ = 0;
  std::vector<ExprId> gate_exprs_;  ///< of out_.gates
  std::set<std::string> gate_ids_;
  std::set<std::uint64_t> wanted_;
};

Result<void> signing_facts(const Image& image, Findings& out) {
  const auto signature = read_code_signature(image);
  if (!signature) return tl::unexpected(signature.error());
  if (!*signature) return {};
  const CodeSignature& found = **signature;
  out.signing.is_signed = true;
  out.signing.flags = found.flags;
  out.signing.adhoc = found.is_adhoc();
  out.signing.linker_signed = found.is_linker_signed();
  out.signing.hardened = found.is_hardened();
  out.signing.library_validation = found.requires_library_validation();
  out.signing.has_cms = found.has_cms;
  out.signing.identifier = std::string(found.identifier);
  out.signing.team_id = std::string(found.team_id);
  out.signing.entitlements = std::string(found.entitlements);
  out.signing.has_der = !found.entitlements_der.empty();
  return {};
}

}  // namespace

Auditor::Auditor(const Vocabulary& words) : words_(&words) {}
Auditor::~Auditor() = default;
Auditor::Auditor(Auditor&&) noexcept = default;

Result<Findings> audit(const Slice& slice, const Vocabulary& words, std::string_view path) {
  return Auditor(words).audit(slice, path);
}

Result<Findings> Auditor::audit(const Slice& slice, std::string_view path) {
  const auto image = Image::read(slice);
  if (!image) return tl::unexpected(image.error());
  Findings out;
  out.image.path = path;
  out.image.member = slice.member;
  out.image.arch = slice.arch;
  out.image.uuid = image->uuid_text();
  out.image.install_name = std::string(image->install_name());
  out.image.size = slice.bytes.size();
  out.image.encrypted = image->encrypted();
  if (image->build()) out.image.build = build_text(*image->build());
  for (const Dylib& dylib : image->dylibs()) out.image.dylibs.emplace_back(dylib.path);
  out.image.xxh3 = llvm::xxh3_64bits(llvm::ArrayRef(slice.bytes.data(), slice.bytes.size()));
  if (auto ok = signing_facts(*image, out); !ok) return tl::unexpected(ok.error());
  const auto fixups = Fixups::read(*image);
  if (!fixups) return tl::unexpected(fixups.error());
  if (auto ok = fixups->walk([](std::uint64_t, const Pointer&) {}); !ok)
    return tl::unexpected(ok.error());
  if (!image->is_arm64() && !image->is_x86_64()) {
    out.notes.emplace_back("code of this architecture is not audited");
    return out;
  }
  if (image->encrypted()) {
    out.notes.emplace_back("the code is encrypted; only headers were read");
    return out;
  }
  auto& decoder = image->is_arm64() ? arm64_ : x86_64_;
  if (auto ok = ImageAudit(*image, *fixups, *words_, decoder, out).run(); !ok)
    return tl::unexpected(ok.error());
  std::sort(out.sites.begin(), out.sites.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return out;
}

}  // namespace metaldoctor
