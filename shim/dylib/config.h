#pragma once
#include "shim/profile_text/profile_text.h"

namespace metaldoctor::shim {

enum class Origin : uint8_t { nothing, section, variable, lume, veertu };
inline constexpr const char* kOriginNames[] = {"nothing", "section", "METALDOCTOR_PROFILE",
                                               "LUME_METAL variables", "VEERTU_ANKA_GPU variables"};

struct Configuration {
  Origin origin = Origin::nothing;
  bool malformed = false;  ///< then everything stays stock
  Overrides overrides;
};

using Lookup = char* (*)(const char* variable);

/// The section wins. Only a template looks at METALDOCTOR_PROFILE, and without that at the
/// variables of the two published shims; a malformed source is not passed over for the next one.
void configure(const char* section, size_t size, Lookup lookup, Configuration& out);

/// Removes the entries of a ':'-separated list whose last path component is `leaf`, in place.
void remove_library(char* list, const char* leaf);
const char* last_component(const char* path);

}  // namespace metaldoctor::shim
