#pragma once
// Whether a library can be injected into a program, from the file alone. The rules are the rows of
// tables/data/preflight.json; this works out the facts that the rows ask for. The part of the
// decision that the kernel's AMFI makes is not published: rows say how each is known.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scanners/macho/image.h"
#include "tables/os_version.h"
#include "tables/tables.h"

namespace metaldoctor {

/// What is known besides the program's own file.
struct PreflightWorld {
  enum class Sip { unknown, on, off } sip = Sip::unknown;  ///< System Integrity Protection
  std::optional<OsVersion> os;
  std::string path;     ///< where the program lies in the guest, absolute and without links
  bool set_id = false;  ///< setuid or setgid bit

  bool library_present = true;
  std::vector<std::string> library_archs{"arm64", "x86_64"};
};

/// Facts in the words of the table, sorted by name: {"hardened", "yes"}.
using PreflightFacts = std::vector<std::pair<std::string, std::string>>;

struct Preflight {
  std::string arch;
  PreflightFacts facts;
  const PreflightRow* row = nullptr;         ///< the one that decided
  std::vector<const PreflightRow*> remarks;  ///< rows with the verdict "note"
  std::string identifier, team_id;           ///< of the signature; may be empty
  std::string entitlements_problem;          ///< why they are damaged or differ

  bool works() const { return row->verdict == "works"; }
  /// Injection fails: the program would run without the library, or die.
  bool fails() const { return row->verdict == "refused" || row->verdict == "killed"; }
};

/// The program is one slice with MH_EXECUTE; anything else is refused (Fault::usage).
Result<Preflight> preflight(const Tables& tables, const Image& image, const PreflightWorld& world);

/// One verdict a slice that macOS could start. `chosen` is the slice that an Apple silicon Mac
/// starts, or that of `arch`.
struct ProgramPreflight {
  std::vector<Preflight> slices;
  std::size_t chosen = 0;

  const Preflight& decision() const { return slices[chosen]; }
};
Result<ProgramPreflight> preflight_program(const Tables& tables, Bytes bytes,
                                           const std::string& name, const std::string& arch,
                                           const PreflightWorld& world);

/// The first row whose facts fit, and the notes before it. Public for tests of the table.
void decide(const Tables& tables, Preflight& preflight);

/// Names of facts and the values that each can have: rows may use no others.
struct FactValues {
  std::string_view fact;
  std::vector<std::string_view> values;
};
const std::vector<FactValues>& preflight_vocabulary();

/// Whether a path belongs to macOS.
bool is_system_path(const Tables& tables, std::string_view path);

}  // namespace metaldoctor
