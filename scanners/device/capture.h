#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/answer.h"
#include "tables/diagnostic.h"
#include "tables/document.h"
#include "tables/evidence.h"
#include "tables/os_version.h"
#include "tables/tables.h"

namespace metaldoctor {

/// Where one answer of a capture came from.
struct CaptureSource {
  enum class Kind { live, log, evidence, assumed } kind = Kind::assumed;
  std::string file;
  std::optional<std::size_t> line;  ///< 1-based
  std::string citation;             ///< for kind evidence: observation id or citation
};

struct CapturedAnswer {
  Answer answer;
  Evidence evidence = Evidence::unknown;
  CaptureSource source;
};

/// Something known that is not an answer: "ggml.has_bfloat", "rset_ok", "override.tool",
/// "os_at_least". Values follow the fact.
struct CapturedFact {
  std::string fact;
  Value value;
  Evidence evidence = Evidence::unknown;
  CaptureSource source;
};

struct UnknownAnswer {
  QueryKey key;
  std::string reason;
};

/// What one device answered. Document kind "capture".
struct Capture {
  std::string name;          ///< MTLDevice.name; empty = unknown
  std::string architecture;  ///< architecture.name; empty = unknown
  std::string registry_id;   ///< decimal; empty = unknown
  struct System {
    std::string os;         ///< "26.5.2"; empty = unknown
    std::string build;      ///< "25F84"
    std::string hw_model;   ///< "VirtualMac2,1"
    std::string cpu_brand;  ///< "Apple M1 Ultra (Virtual)"
    std::optional<bool> is_virtual;
  } system;
  std::vector<CapturedAnswer> answers;  ///< at most one an answer key
  std::vector<CapturedFact> facts;
  std::vector<UnknownAnswer> unknown;

  const CapturedAnswer* find(const QueryKey& key) const;
  const CapturedFact* fact(std::string_view name) const;
  /// unknown where the capture does not say.
  Value answer(const QueryKey& key) const;
  /// A paravirtual or otherwise virtual device; none = cannot be told.
  std::optional<bool> is_guest() const;
  OsKnowledge os(const Tables& tables) const;
};

/// A family that a yes to another one implies (Apple7 implies Apple6) and that was not read becomes
/// a yes, `inferred`. A no that was read stays.
void add_implied_families(const Tables& tables, Capture& capture);

/// Reads a capture document; aliases of queries are resolved, duplicate answers refused.
Result<Capture> read_capture(const Tables& tables, std::string_view text, std::string_view name);
Json to_json(const Capture& capture);

}  // namespace metaldoctor
