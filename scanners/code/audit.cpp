#include "scanners/code/audit.h"

#include <fmt/format.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <array>
#include <set>

#include "scanners/code/candidates.h"
#include "scanners/code/fields.h"
#include "scanners/code/gates.h"
#include "scanners/code/ladders.h"
#include "scanners/code/trace.h"
#include "scanners/macho/code_signature.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kLongestSelector = 128;
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
    program_.emplace(std::move(*program));
    out_.functions = program_->functions().addresses.size();
    if (auto ok = registered_selectors(); !ok) return ok;
    const Candidates candidates = find_candidates(*program_, {});
    out_.words = candidates.words;
    out_.counted = candidates.counted;
    for (const std::uint64_t function : candidates.functions)
      if (auto ok = function_findings(function); !ok) return ok;
    if (auto ok = readers(); !ok) return ok;
    hidden();
    name_functions();
    return {};
  }

 private:
  Result<Tracer*> tracer() {
    if (!decoder_) {
      auto decoder = Decoder::create();
      if (!decoder) return tl::unexpected(decoder.error());
      decoder_ = std::make_unique<Decoder>(std::move(*decoder));
    }
    if (!tracer_) tracer_.emplace(*program_, *decoder_, expressions_);
    return &*tracer_;
  }

  /// metal-cpp and C code register selectors at start and keep them in globals: find those first.
  Result<void> registered_selectors() {
    CandidateGoals goals;
    goals.queries = false;
    goals.registrations = true;
    const Candidates candidates = find_candidates(*program_, goals);
    std::map<std::uint64_t, std::string_view> globals;
    for (const std::uint64_t function : candidates.functions) {
      auto trace = traced(function);
      if (!trace) return tl::unexpected(trace.error());
      for (const auto& [global, selector] : trace->registered) globals.emplace(global, selector);
    }
    program_->add_registered(globals);
    return {};
  }

  Result<FunctionTrace> traced(std::uint64_t function) {
    auto made = tracer();
    if (!made) return tl::unexpected(made.error());
    const auto [begin, end] = program_->functions().around(image_, function);
    ++out_.functions_decoded;
    return (*made)->trace(begin, end, begin);
  }

  Result<void> function_findings(std::uint64_t function) {
    const auto [begin, end] = program_->functions().around(image_, function);
    for (std::uint64_t part = begin; part < end; part += kMaxFunctionBytes)
      if (auto ok = part_findings(part, end, begin); !ok) return ok;
    return {};
  }

  Result<void> part_findings(std::uint64_t begin, std::uint64_t end, std::uint64_t function) {
    auto made = tracer();
    if (!made) return tl::unexpected(made.error());
    const FunctionTrace trace = (*made)->trace(begin, end, function);
    ++out_.functions_decoded;
    for (const CallEvent& event : trace.calls) {
      site(trace, event);
      if (out_.sites.size() > kMaxSites)
        return fail(Fault::input, "audit-too-many-sites", image_.where(),
                    fmt::format("expected at most {} query sites in one image", kMaxSites));
    }
    const auto ladders = find_ladders(trace, expressions_);
    for (const LadderRun& run : ladders)
      if (out_.ladders.size() < kMaxLadders) ladder(trace, run);
    if (out_.gates.size() > kMaxGates) {
      if (out_.notes.empty() || out_.notes.back() != kTooManyGates)
        out_.notes.emplace_back(kTooManyGates);
      return {};
    }
    auto gates = find_gates(*program_, trace, expressions_, ladders,
                            [&](std::uint64_t address) { return placeholder(address); });
    out_.gates.insert(out_.gates.end(), std::make_move_iterator(gates.begin()),
                      std::make_move_iterator(gates.end()));
    if (!trace.exact)
      out_.notes.push_back(
          fmt::format("function {:#x}: loops are nested too deep or the function is "
                      "too large; values were forgotten there",
                      function));
    return {};
  }

  void site(const FunctionTrace& trace, const CallEvent& event) {
    const Target& target = *event.target;
    if (target.selector) {
      const SelectorRole role = target.selector->role;
      if (role != SelectorRole::query && role != SelectorRole::compile &&
          role != SelectorRole::os_version)
        return;
      if (target.selector->ambiguous && !event.receiver_is_device && event.expr == kNoExpr) {
        ++out_.unproven[target.selector->name];
        return;
      }
    } else if (target.function->role != FunctionRole::device &&
               target.function->role != FunctionRole::device_list) {
      return;
    }
    QuerySite site;
    site.address = event.address;
    site.id = fmt::format("{}:{}:{:x}", identity(), out_.image.arch, event.address);
    site.function_address = trace.function;
    site.route = event.route;
    site.tail_call = event.tail;
    site.selector = std::string(target.name);
    site.query = target.selector ? target.selector->query : std::string(target.name);
    site.receiver = event.receiver_is_device ? Certainty::certain : Certainty::likely;
    if (target.selector) {
      site.arguments = arguments(trace, event);
      site.counts =
          target.selector->role == SelectorRole::query && target.selector->integer_arguments > 0;
    }
    out_.sites.push_back(std::move(site));
  }

  SiteArguments arguments(const FunctionTrace& trace, const CallEvent& event) const {
    SiteArguments out;
    const unsigned count = std::min(event.target->selector->integer_arguments, 2u);
    for (unsigned i = 0; i < count; ++i) {
      const AbstractValue& value = event.arguments[2 + i];
      if (is_number(value)) {
        out.kind = SiteArguments::Kind::value;
        out.values.push_back(value.offset);
        continue;
      }
      if (value.kind == AbstractValue::Kind::set && count == 1) {
        out.kind = SiteArguments::Kind::set;
        out.values = trace.values.set(value.id);
      } else if (is_based(value) && trace.values.base(value.base).kind == Base::Kind::parameter) {
        out.kind = SiteArguments::Kind::base_plus_parameter;
        out.base = value.offset;
        out.parameter = static_cast<unsigned>(trace.values.base(value.base).at);
      } else {
        out.kind = SiteArguments::Kind::unresolved;
        out.reason = is_based(value) ? trace.values.describe(value.base)
                                     : "computed, or different on different paths";
      }
      break;
    }
    return out;
  }

  void ladder(const FunctionTrace& trace, const LadderRun& run) {
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
    out_.ladders.push_back(std::move(ladder));
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
    std::optional<Diagnostic> failure;
    find_readers(
        *program_,
        [&](std::uint64_t function) {
          auto trace = traced(function);
          if (trace) return std::move(*trace);
          failure = trace.error();
          return FunctionTrace{};
        },
        fields);
    if (failure) return tl::unexpected(*failure);
    hand_back(fields);
    return {};
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

  /// Selector texts in string sections that nothing of the known routes leads to.
  void hidden() {
    std::set<std::string_view> found;
    for (const Section& section : image_.sections()) {
      if (section.name != "__cstring" && section.name != "__objc_methname") continue;
      Cursor cursor(section.bytes);
      while (!cursor.at_end()) {
        const std::string_view text = cursor.cstring();
        // Most strings of a file are too long for a selector or start like prose: skip the lookup.
        const bool may_be = !text.empty() && text.size() <= kLongestSelector &&
                            text.front() >= 'a' && text.front() <= 'z';
        const Selector* selector = may_be ? words_.selector(text) : nullptr;
        if (selector && selector->role == SelectorRole::query && !selector->ambiguous &&
            !program_->reaches(text))
          found.insert(text);
      }
    }
    for (const std::string_view text : found)
      out_.hidden.push_back({std::string(text),
                             "its text is in the image, but no stub, selector slot or registered "
                             "global leads to it: a private wrapper or a table may"});
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
  std::optional<Program> program_;
  std::optional<Tracer> tracer_;
  Expressions expressions_;
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
  if (!image->is_arm64()) {
    out.notes.emplace_back("code of this architecture is not audited");
    return out;
  }
  if (image->encrypted()) {
    out.notes.emplace_back("the code is encrypted; only headers were read");
    return out;
  }
  if (auto ok = ImageAudit(*image, *fixups, *words_, decoder_, out).run(); !ok)
    return tl::unexpected(ok.error());
  std::sort(out.sites.begin(), out.sites.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return out;
}

}  // namespace metaldoctor
