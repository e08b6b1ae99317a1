#pragma once
// What an injected library costs, in guest instructions that the simulator counted. The methods of
// the simulated Metal cost none, so a difference is the library's own.
#include "scanners/macho/fixups.h"
#include "tests/unit/behaviour/support.h"

namespace metaldoctor::testing {

struct LibraryCost {
  std::uint64_t constructor = 0;
  std::uint64_t passed_on = 0;   ///< a hooked question whose answer is not changed, journal off
  std::uint64_t overridden = 0;  ///< and one whose answer is
  std::uint64_t journalled = 0;  ///< a question that the journal has already
  std::uint64_t imports = 0, size = 0;
};

inline std::uint64_t instructions(Bytes library, const std::string& arch,
                                  const std::vector<std::int64_t>& families, bool journal = false) {
  SimRequest request;
  request.images = {{"/libmetaldoctor-shim.dylib", library}};
  request.arch = arch;
  request.metal = SimMetal::start;
  request.devices = {
      {*read_capture(tables(), *tables().capture_text("paravirtual"), "stock"), "", {}}};
  SimStep start, ask;
  start.kind = SimStep::Kind::initializers;
  ask.kind = SimStep::Kind::ask;
  for (const std::int64_t value : families) ask.queries.push_back({"supportsFamily:", {value}});
  request.steps = {start};
  if (!families.empty()) request.steps.push_back(ask);
  request.runs = {{"run", {}, {}}};
  if (journal) request.environment["METALDOCTOR_JOURNAL"] = "/journal";
  const auto result = simulate(tables(), request, {});
  EXPECT_TRUE(result && !result->runs[0].stop);
  return result ? result->runs[0].instructions : 0;
}

inline LibraryCost cost_of(Bytes library, const std::string& arch) {
  LibraryCost cost;
  cost.constructor = instructions(library, arch, {});
  const auto one_more = [&](std::int64_t family, bool journal) {
    return instructions(library, arch, {family, family, family}, journal) -
           instructions(library, arch, {family, family}, journal);
  };
  cost.passed_on = one_more(1002, false);
  cost.overridden = one_more(1007, false);
  cost.journalled = one_more(1002, true);
  const auto file = MachOFile::read(library, "library");
  for (const Slice& slice : file->slices()) {
    if (slice.arch != arch) continue;
    cost.size = slice.bytes.size();
    const auto image = Image::read(slice);
    cost.imports = Fixups::read(*image)->imports().size();
  }
  return cost;
}

}  // namespace metaldoctor::testing
