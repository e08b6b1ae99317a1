#pragma once
// A profile document in the text form that the injected library reads, and back.
#include <string>
#include <string_view>
#include <vector>

#include "shim/profile.h"
#include "shim/profile_text/profile_text.h"

namespace metaldoctor {

/// What a library was given, in the words of a profile. Reasons and evidence are not part of it.
struct InjectedProfile {
  std::vector<Answer> changes;
  Profile::Callers callers = Profile::Callers::all;
  Profile::Scope scope = Profile::Scope::process;
  shim::Bound bound = shim::Bound::host;

  bool observes_only() const { return changes.empty(); }
  friend bool operator==(const InjectedProfile&, const InjectedProfile&) = default;
};

/// The changes of a profile, sorted as the text form has them. Refused are answers that cannot be
/// overridden, values the library cannot give, and more changes than it has room for.
Result<InjectedProfile> injected_profile(const Tables& tables, const Profile& profile,
                                         shim::Bound bound);
/// The one spelling: the same changes give the same text.
std::string encode(const InjectedProfile& profile);
/// By the parser of the library itself.
Result<InjectedProfile> decode_profile(std::string_view text, std::string_view where);

}  // namespace metaldoctor
