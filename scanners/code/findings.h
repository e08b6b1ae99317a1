#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scanners/code/program.h"
#include "tables/document.h"

namespace metaldoctor {

enum class Certainty : std::uint8_t { certain, likely };

/// The integer arguments of a query site.
struct SiteArguments {
  enum class Kind : std::uint8_t {
    none,                 ///< the query has no integer argument
    value,                ///< `values`: one a parameter
    set,                  ///< `values`: one of these, for the first parameter
    base_plus_parameter,  ///< `base` + what the enclosing function got as parameter `parameter`
    unresolved,           ///< `reason`
  } kind = Kind::none;
  std::vector<std::int64_t> values;
  std::int64_t base = 0;
  unsigned parameter = 0;
  std::string reason;
  bool from_caller = false;  ///< a caller inside the image knows more

  bool is_resolved() const { return kind != Kind::none && kind != Kind::unresolved; }
};

/// One place in the code that asks something.
struct QuerySite {
  std::string id;             ///< UUID (or name) + arch + address
  std::uint64_t address = 0;  ///< of the call or branch; offset in the section for object files
  std::uint64_t function_address = 0;
  std::string function;  ///< symbol, or "function 0x67b4"
  Route route = Route::stub;
  bool tail_call = false;
  std::string selector;  ///< as sent; the symbol for C functions
  std::string query;     ///< canonical
  /// What an answer is compared with (`query` is the answer then), the selector that
  /// respondsToSelector: is asked for, the name or version that a function is asked for.
  std::string text;
  SiteArguments arguments;
  bool counts = false;  ///< asks the device and has an integer argument: in totals
  Certainty receiver = Certainty::likely;  ///< certain: proven to be a device
};

/// Unrolled probing of consecutive values: "which is the highest family?"
struct Ladder {
  std::string query;
  std::int64_t first = 0, last = 0;  ///< in code order
  std::uint64_t address = 0;         ///< of the first site
  std::string function;
  std::vector<std::uint64_t> sites;
  /// "field [result of call 0x67e0]+0x154 (value - 1000)"; empty = nothing found that keeps it.
  std::vector<std::string> uses;
  std::vector<std::uint64_t> readers;  ///< instructions elsewhere that read such a field
  struct Kept {
    bool global = false;
    std::int64_t offset = 0;
    std::uint8_t size = 0;
    std::uint64_t function = 0;
  };
  std::vector<Kept> kept;  ///< the fields behind `uses`
};

/// What lies on one side of a gate.
struct GateSide {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  ///< [from, to)
  std::vector<std::string> calls;  ///< C functions and functions of the image
  std::vector<std::string> selectors;
  std::vector<std::string> strings;
};

/// Code or data that hangs on answers.
struct Gate {
  std::string id;    ///< "G-6854", unique in the image
  std::string expr;  ///< in the grammar of tables/predicate.h
  struct Where {
    enum class Kind : std::uint8_t { branch, select, field, global, returned } kind = Kind::branch;
    std::uint64_t address = 0;  ///< of the instruction (the last store of a field); the global
    std::string base;           ///< field: what object, as in "result of call 0x67e0"
    std::int64_t offset = 0;    ///< field
    std::uint8_t size = 0;      ///< field, global: bytes
    bool object = false;        ///< field: of an object that lives on; its readers were looked for
  } where;
  bool changed_by_calls = false;  ///< a called function got the object and could have changed it
  std::string function;
  std::uint64_t function_address = 0;
  GateSide if_true, if_false;
  Certainty certainty = Certainty::certain;
  std::vector<std::uint64_t> stores;   ///< fields and globals: every store
  std::vector<std::uint64_t> readers;  ///< loads of the field in other functions, if found
  std::vector<std::string> feeds;      ///< gates of the readers that test it
};

/// A query that the image names but that no route of this audit reaches.
struct HiddenQuery {
  std::string selector;
  std::string reason;
};

/// What an audit found in one slice. Document kind "findings".
struct Findings {
  struct ImageFacts {
    std::string path, member, arch, uuid, install_name, build;  ///< build: "macOS 14.0, SDK 26.5"
    std::uint64_t xxh3 = 0;                                     ///< of the slice
    std::uint64_t size = 0;
    std::vector<std::string> dylibs;
    bool encrypted = false;
  } image;
  struct Signing {
    bool is_signed = false, adhoc = false, linker_signed = false, hardened = false;
    bool library_validation = false, has_cms = false;
    std::uint32_t flags = 0;
    std::string identifier, team_id, entitlements;  ///< entitlements: XML as found
    bool has_der = false;
  } signing;
  std::vector<QuerySite> sites;  ///< by address
  std::vector<Ladder> ladders;
  std::vector<Gate> gates;
  std::vector<HiddenQuery> hidden;
  std::map<std::string, std::size_t> counted;  ///< pipeline getters: number of sites
  std::map<std::string, std::size_t>
      unproven;  ///< ambiguous selectors sent to what may be no device
  std::size_t functions = 0, functions_decoded = 0, words = 0;
  std::vector<std::string> notes;

  struct Totals {
    std::size_t found = 0, resolved = 0, unresolved = 0;
  };
  Totals totals() const;
};

std::string_view to_string(Route route);
std::string to_string(
    const SiteArguments& arguments);  ///< "1007", "{1006, 1007}", "1000 + parameter 0"
/// One line a finding, in address order: what tests compare.
std::string dump(const Findings& findings);
Json to_json(const Findings& findings);

}  // namespace metaldoctor
