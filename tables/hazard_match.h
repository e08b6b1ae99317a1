#pragma once
#include "tables/answer.h"
#include "tables/os_version.h"
#include "tables/tables.h"

namespace metaldoctor {

/// True if `to` promises more than `from`: yes where it was not yes, or a larger number. An unknown
/// `from` promises nothing.
bool is_raised(const Value& from, const Value& to);

/// An answer that is changed, or that a guest claims, as hazards look at it.
struct AnswerChange {
  QueryKey key;
  Value to;
  Value from;  ///< the guest's own answer; unknown where it was not read
  Value host;  ///< by the tables; unknown where they do not say
};

/// Whether the hazard is about that change. Its scope, programs and OS range are not looked at.
bool is_about(const Tables& tables, const Hazard& hazard, const AnswerChange& change);

/// Whether the hazard's OS range holds. An OS that is not known is taken as the assumed one, as
/// everywhere else: a hazard of old systems must not stop every guest whose log names no OS.
bool applies_on(const Hazard& hazard, const OsKnowledge& os);

}  // namespace metaldoctor
