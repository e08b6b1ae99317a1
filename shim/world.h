#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shim/recommend.h"
#include "tables/host_answers.h"
#include "tables/predicate.h"

namespace metaldoctor {

/// What a program in the guest sees, and what it would see with the host's answers: the host's
/// world keeps the guest's driver facts, OS, environment, device name and architecture, because no
/// profile changes those.
class Situation {
 public:
  Situation(const Tables& tables, const Capture& guest, const RecommendOptions& options);

  const Tables& tables() const { return tables_; }
  const Capture& capture() const { return guest_; }
  /// The chip that bounds a profile; none where an obstacle stands in the way.
  const Chip* host() const { return obstacle_ ? nullptr : host_; }
  /// The chip by name, also where it bounds nothing.
  const Chip* named_host() const { return host_; }
  /// Why no answer of this guest may be changed at all: "not-an-apple-gpu", "host-contradiction",
  /// "host-unknown".
  const std::optional<Diagnostic>& obstacle() const { return obstacle_; }
  bool is_apple_gpu() const { return is_apple_gpu_; }
  const OsKnowledge& os() const { return os_; }
  /// False only where the capture shows a bare-metal device.
  bool may_be_guest() const { return guest_.is_guest() != false; }

  World guest() const;
  World host_world() const;

  /// Whether a profile may change the answer.
  bool overridable(const QueryKey& key) const;
  bool overridable(const Atom& atom) const;
  Value guest_answer(const QueryKey& key) const;
  /// None where the host or its answer is not known.
  std::optional<HostAnswer> host_answer(const QueryKey& key) const;
  /// The bound that holds whatever the host: an integer limit that is one number on every Mac chip.
  std::optional<HostAnswer> common_limit(const QueryKey& key) const;
  /// Whether the guest's value of `key` was taken from common_limit because nobody read it.
  bool taken_from_limit(const QueryKey& key) const;
  /// Whether nobody read `key` and it was taken as stock paravirtual guests answer it. Only where
  /// what was read is all as they answer.
  bool taken_from_stock(const QueryKey& key) const;
  const Family* family(const QueryKey& key) const;  ///< of supportsFamily:, else null

  /// The assumptions that these atoms rest on, a sentence each.
  std::vector<std::string> assumptions(const std::set<Atom>& atoms) const;
  /// "name is 'Apple Paravirtual device'", "env('X') is no (taken as unset)", in the guest.
  std::string describe(const Atom& atom) const;

 private:
  Value other_value(const Atom& atom) const;  ///< all kinds but answer
  Value driver_fact(const std::string& name) const;
  bool environment_given(const std::string& name) const;
  void learn_stock_answers();

  const Tables& tables_;
  const Capture& guest_;
  const RecommendOptions& options_;
  const Chip* host_ = nullptr;
  OsKnowledge os_;
  bool is_apple_gpu_ = true;
  std::optional<Diagnostic> obstacle_;
  std::map<QueryKey, Value> stock_;  ///< empty unless the guest is a stock one
  mutable std::map<QueryKey, std::optional<HostAnswer>> host_answers_, common_limits_;
};

}  // namespace metaldoctor
