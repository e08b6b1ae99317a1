#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tables/answer.h"
#include "tables/diagnostic.h"
#include "tables/evidence.h"
#include "tables/os_version.h"
#include "tables/predicate.h"

namespace metaldoctor {

/// How a table row is known: keys into Tables::sources(), or a plain citation where the table has
/// no key for it.
struct Provenance {
  Evidence evidence = Evidence::unknown;
  std::vector<std::string> sources;
  std::string note;
};

/// A value of MTLGPUFamily.
struct Family {
  std::string name;                  ///< "MTLGPUFamilyApple7"
  std::string short_name;            ///< "Apple7"
  std::int64_t value = 0;            ///< 1007
  std::string line;                  ///< "Apple", "Mac", "Common", "MacCatalyst", "Metal"
  std::vector<std::string> implies;  ///< short names, transitively closed
  OsVersion min_macos;               ///< the first macOS whose SDK has the constant
  /// Which chips answer yes besides those that imply it: chips from this Apple family on
  /// ("Apple7"). None = no chip beyond `implies`, or not confirmed (MacCatalyst).
  std::optional<std::string> reported_from;
  bool mac_only = false;  ///< `reported_from` holds for chips in a Mac only
  Provenance provenance;
};

/// A value of MTLFeatureSet, the question that came before families.
struct FeatureSet {
  std::string name;                   ///< "MTLFeatureSet_macOS_GPUFamily2_v1"
  std::int64_t value = 0;             ///< 10005
  std::optional<std::string> family;  ///< family short name that it corresponds to
  bool mac = false;  ///< a macOS set; what a Mac answers to the others was not read
  Provenance provenance;
};

struct Chip {
  std::string name;                   ///< "M1 Ultra"
  std::optional<std::string> family;  ///< highest Apple family, short name; none = unconfirmed
  bool mac = false;                   ///< ships in a Mac: also answers Mac2, Metal3, Metal4
  std::string gpu_name;               ///< MTLDevice.name on bare metal; may be empty
  std::string cpu_brand;              ///< machdep.cpu.brand_string on bare metal; may be empty
  std::string architecture;           ///< architecture.name; may be empty
  std::vector<std::string> hw_models;
  std::vector<std::string> inferred_families;  ///< expected by analogy, never read on this chip
  Provenance provenance;
};

/// A row of Apple's feature tables: lowest family of each line that has it. "varies" = ask the
/// device. A device has the feature if any of its lines meets the floor.
struct Feature {
  std::string id;
  std::string name;
  std::optional<std::string> metal, apple, mac;
  std::string query;  ///< the selector that answers it, if one does
  std::optional<OsVersion> min_macos;
  Provenance provenance;
};

struct Limit {
  std::string id;
  std::string name;
  std::string unit;
  std::string query;                    ///< the selector that answers it, if one does
  std::map<std::string, Value> values;  ///< by family short name; unknown where not confirmed,
                                        ///< a string for "no limit", "varies" and
                                        ///< "not available"
  Provenance provenance;
};

enum class AnswerType { boolean, integer, text, structure, object };

/// What devices from a floor on answer. Of a query's rows the first one that fits is taken.
struct KnownAnswer {
  std::optional<std::int64_t> argument;  ///< none = any, or the query has none
  Value answer;
  std::optional<std::string> apple, mac;  ///< family short names; both none = every Mac chip
  Provenance provenance;
};

/// One question that MTLDevice answers.
struct Query {
  std::string selector;  ///< canonical: "supportsFamily:"
  std::vector<std::string> aliases;
  AnswerType type = AnswerType::boolean;
  std::optional<int> wire;   ///< stable number in profiles and journals; overridable queries only
  bool overridable = false;  ///< BOOL and integer answers that are capability, not identity
  bool safe_to_ask = false;  ///< no side effect and no known crash on a paravirtual device
  std::string argument;      ///< "MTLGPUFamily (NSInteger)"; empty = none
  std::string encoding_arm64;
  std::string unit;
  OsVersion min_macos;
  std::string feature;             ///< feature id; may be empty
  std::string limit;               ///< limit id; may be empty
  std::vector<KnownAnswer> known;  ///< where neither feature nor limit gives the whole answer
  std::vector<std::int64_t> known_arguments;  ///< every argument that is worth asking
  std::string expected;                       ///< what real devices answer, in words
  Provenance provenance;
};

/// Which changed answers a hazard is about.
struct HazardAnswer {
  std::string query;                     ///< canonical selector, or "*"
  std::optional<std::int64_t> argument;  ///< none = any
  enum class When { raised, above_table, above_host } when = When::raised;
};

struct Hazard {
  std::string id;  ///< "metal3-residency-in-guest"
  std::vector<HazardAnswer> answers;
  enum class Scope { process, program } scope = Scope::process;  ///< program: by the next two
  std::vector<std::string> programs;                             ///< app ids; scope program
  std::vector<std::string> or_gate_sends;  ///< selectors on the opened side of a found gate
  /// Applies from..to (inclusive from, exclusive to); OsKnowledge::reaches decides.
  std::optional<OsVersion> os_from, os_to;
  std::string effect;
  Provenance provenance;
};

/// A code path of a program and the answers it hangs on.
struct Rule {
  std::string id;
  Predicate predicate;
  std::string opens;  ///< what runs when the predicate holds
  /// What opening it is worth. Only `gain` paths are wanted by default; a `harm` path that is
  /// closed in the guest must stay closed; `neutral` paths (asserts, tuning, logs) are reported.
  enum class Side { gain, harm, neutral } side = Side::gain;
  std::string effect;
  std::vector<std::string> kernels;    ///< kernel name patterns
  std::vector<std::string> log_lines;  ///< what the program prints when it is open
  std::vector<std::string> hazards_if_forced;
  std::string included_from;  ///< "ggml-metal@G8": a rule of that range; empty = of this program
  Provenance provenance;
};

/// How to recognise a program or a range of its releases in a binary.
struct Marker {
  std::string kind;      ///< "section", "symbol", "cstring", "selector", "msl", "path"
  std::string match;     ///< the whole name, for cstring and msl a part of the text
  std::string from, to;  ///< range ids this marker bounds (inclusive); empty = open
  std::string note;
};

struct AppRange {
  std::string id;                    ///< "G8"
  std::string title;                 ///< "PR #22318 (2026-04-29) to 2026-08-21; includes b10167"
  std::vector<std::string> aliases;  ///< releases that users name: "b10167"
  /// Ranges of other programs that this one runs ("ggml-metal@G8"): their rules and questions are
  /// in `rules` and `asks` too, after its own.
  std::vector<std::string> includes;
  std::vector<Rule> rules;
  std::vector<QueryKey> asks;  ///< answers asked; a query without its argument = computed
  std::string notes;
  Provenance provenance;
};

/// Releases of one program as its users number them, and the range that each belongs to. Programs
/// that share code have numbers of their own: llama.cpp b5000, whisper.cpp 1.8.2.
struct ReleaseLine {
  struct Span {
    std::string range;     ///< "G4"
    std::string from, to;  ///< inclusive, "1.2" ends with the last 1.2.x; empty = open
  };
  std::vector<std::string> programs;  ///< names that are numbered so: "llama.cpp", "llama-server"
  std::vector<Span> spans;            ///< oldest first, gaps where no release was read
  Provenance provenance;
};

struct App {
  std::string id;  ///< "ggml-metal"
  std::string name;
  std::vector<std::string> aliases;  ///< "llama.cpp"
  std::vector<AppRange> ranges;      ///< oldest first
  std::vector<ReleaseLine> releases;
  std::vector<Marker> markers;
  std::vector<std::pair<std::string, std::string>> env;  ///< variable, what it does
};

/// A word or a code of a diagnosis.
struct Verdict {
  std::string id;  ///< "mismatch" (a word) or "VM_APPLE_FAMILY_UNDERREPORTED" (a code)
  bool is_word = false;
  std::string meaning;
  std::string advice;
  Provenance provenance;
};

/// What a stock paravirtual device answers, one row an answer, with the observations behind it.
/// An unknown value is a row too: nobody read it, or it follows the host; the note says which.
struct ParavirtualAnswer {
  Answer answer;
  Provenance provenance;
};

/// One observation of a guest ("P1"), kept for `explain` and for sources.
struct Observation {
  std::string id;
  std::string guest;
  std::string host;
  std::string text;
  std::vector<std::string> sources;
};

/// The shape of one tool's log, read by scanners/device. See log-grammars.json.
struct LogGrammar {
  std::string id;
  std::vector<std::string> prefixes;  ///< what a line starts with, after any time stamp
  struct Item {
    std::string key;     ///< literal text after the prefix, runs of spaces collapsed
    std::string form;    ///< how the value reads: "family", "bool", "megabytes", "device", "flag"
    std::string yields;  ///< "supportsFamily:", "fact:ggml.has_bfloat", "device.name" ...
    Json detail;         ///< form-specific: ladder bounds, what a value proves about the OS
  };
  std::vector<Item> items;
  Provenance provenance;
};

/// A row of the decision table of injection: the first whose facts all have one of the given values
/// decides. The facts and their values are those of shim/inject/preflight.h.
struct PreflightRow {
  std::string id;  ///< "hardened-library-validation"
  std::vector<std::pair<std::string, std::vector<std::string>>> when;
  std::string verdict;  ///< "works", "refused", "killed", "undecided"; "note" decides nothing
  std::string reason;
  std::string todo;  ///< empty = nothing to do
  Provenance provenance;
};

/// Whether paths with a prefix belong to macOS; the first prefix that fits counts.
struct SystemPlace {
  std::string prefix;  ///< "/usr/"
  bool system = false;
  Provenance provenance;
};

/// A program of macOS that starts others and does not hand dyld's variables on.
struct Launcher {
  std::string name;
  bool takes_assignments = false;  ///< `env NAME=VALUE PROGRAM`: can be done without it
  std::string advice;
  Provenance provenance;
};

/// Everything that is true, read once. Each part is parsed on first use, so that a command pays
/// only for what it needs. Not thread-safe until warmed. An embedded table that cannot be read is
/// a bug that the tests of the tables would have shown: std::logic_error.
class Tables {
 public:
  /// The tables that were embedded at build time. A malformed one is a bug of ours.
  static Result<Tables> embedded();
  /// Files of `directory` (name relative to it -> text) override embedded files of the same name.
  /// They are validated against their schemas, the whole set for references between files.
  static Result<Tables> with_overrides(std::map<std::string, std::string> files,
                                       std::string_view directory);
  ~Tables();
  Tables(Tables&&) noexcept;
  Tables& operator=(Tables&&) noexcept;

  std::string_view edition() const;  ///< "2026-12-01"; profiles record it
  const std::vector<Family>& families() const;
  const std::vector<FeatureSet>& feature_sets() const;
  const std::vector<Chip>& chips() const;
  const std::vector<Feature>& features() const;
  const std::vector<Limit>& limits() const;
  const std::vector<Query>& queries() const;
  const std::vector<Hazard>& hazards() const;
  const std::vector<App>& apps() const;
  const std::vector<Verdict>& verdicts() const;
  const std::vector<ParavirtualAnswer>& paravirtual() const;
  const std::vector<Observation>& observations() const;
  const std::vector<LogGrammar>& log_grammars() const;
  const std::vector<PreflightRow>& preflight_rows() const;
  const std::vector<SystemPlace>& system_places() const;
  const std::vector<Launcher>& launchers() const;
  OsVersion newest_macos() const;  ///< what is assumed where nothing says otherwise

  const Family* family(std::int64_t value) const;
  const Family* family(std::string_view short_name) const;
  const FeatureSet* feature_set(std::int64_t value) const;
  /// By name ("M1 Ultra"), GPU name ("Apple M1 Ultra") or CPU brand, also with " (Virtual)".
  const Chip* chip(std::string_view any_name) const;
  const Query* query(std::string_view selector_or_alias) const;
  const Feature* feature(std::string_view id) const;
  const Limit* limit(std::string_view id) const;
  const Hazard* hazard(std::string_view id) const;
  const Verdict* verdict(std::string_view id) const;
  const App* app(std::string_view id_or_alias) const;
  /// The citation behind a source key, or the key itself where it is a citation already.
  std::string_view source(std::string_view key) const;

  /// Resolves aliases, checks that the query exists and has the arguments it needs.
  Result<QueryKey> canonical(const QueryKey& key) const;

  /// A built-in capture document: "cua-2026-08-stock", "paravirtual".
  std::optional<std::string_view> capture_text(std::string_view name) const;
  std::vector<std::string_view> capture_names() const;

  /// One line a table file: its name, rows, and what is wrong with it (empty = valid).
  struct FileReport {
    std::string name;
    std::string schema;
    std::size_t rows = 0;
    std::vector<Diagnostic> problems;
  };
  std::vector<FileReport> validate() const;

 private:
  struct Impl;
  explicit Tables(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace metaldoctor
