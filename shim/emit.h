#pragma once
// Makes the injected library for one profile: the template that was built with this program, with
// the profile in its reserved section, signed again. No compiler, no clock, no random number: the
// same profile gives the same bytes.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/macho/bytes.h"
#include "shim/wire_profile.h"

namespace metaldoctor {

struct EmitOptions {
  bool observe = false;  ///< change nothing and keep the journal: the changes are left out
  std::optional<Profile::Callers> callers;  ///< none = the profile's
  std::optional<Profile::Scope> scope;
  bool allow_above_host = false;  ///< marks the library and every journal it writes
  /// Adds an arm64e slice. Experimental, never loaded by a Mac yet: from macOS 14.4 on dyld prefers
  /// it in arm64 processes too, so a bad one breaks more than it mends.
  bool arm64e = false;
  std::string name;  ///< goes into file_name; letters, digits, '-', '_' and '.' of it are kept
};

struct EmittedSlice {
  std::string arch;
  std::size_t size = 0;
  std::string cdhash;
};

struct EmitResult {
  std::vector<std::uint8_t> bytes;
  std::string sha256;
  std::string file_name;     ///< "libmetaldoctor-<name>-<12 digits of the hash>.dylib"
  std::string profile_text;  ///< what the section holds; also a value for METALDOCTOR_PROFILE
  InjectedProfile profile;
  std::vector<EmittedSlice> slices;
  std::vector<std::string> above_host;  ///< "supportsFamily:1009: M1 Ultra answers no"
};

/// What of `changes` lies above the bound of the profile, or cannot be shown not to. A profile
/// without a chip is held against every Mac chip. Refused is a chip that the tables do not have.
Result<std::vector<std::string>> answers_above_bound(const Tables& tables, const Profile& profile,
                                                     const std::vector<Answer>& changes);

/// Refused (Fault::refused) is a profile with an answer above its bound, or whose bound is unknown,
/// unless that is allowed; and one with a hazard of every process that it does not accept.
Result<EmitResult> emit(const Tables& tables, const Profile& profile, const EmitOptions& options);

/// The line that runs a program with the library at `path`.
std::string run_line(std::string_view path);

/// The library as it was built: configured by the environment only.
Bytes embedded_template();
inline constexpr std::string_view kInstallName = "@rpath/libmetaldoctor-shim.dylib";

/// Writes `text` into the reserved section of every slice of `library` and signs them again.
/// Refused are libraries that are no template of this version. Public for verify and tests.
Result<std::vector<std::uint8_t>> specialise(Bytes library, std::string_view name,
                                             std::string_view text);

/// What emit makes of the embedded templates for a profile text.
Result<std::vector<std::uint8_t>> make_library(std::string_view text, bool arm64e);

}  // namespace metaldoctor
