// A whole file: slices, load commands, fixups, exports, starts, stubs, signature, and the audit.
#include <cstdint>

#include "scanners/code/audit.h"
#include "scanners/macho/exports.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metaldoctor;
  static const Vocabulary words = [] {
    auto selectors = auxiliary_selectors();
    selectors.push_back(
        {"supportsFamily:", SelectorRole::query, "supportsFamily:", 1, AnswerType::boolean, false});
    selectors.push_back({"name", SelectorRole::query, "name", 0, AnswerType::text, true});
    return Vocabulary(std::move(selectors), known_functions());
  }();
  static Auditor auditor(words);
  const auto file = MachOFile::read({data, size}, "fuzz");
  if (!file) return 0;
  for (const Slice& slice : file->slices()) {
    if (const auto image = Image::read(slice)) (void)walk_exports(*image, [](const Export&) {});
    if (const auto findings = auditor.audit(slice, "fuzz")) (void)dump(*findings);
  }
  return 0;
}
