#include "tools/metaldoctor/binary_input.h"

#include <fmt/format.h>

#include "scanners/code/audit.h"
#include "scanners/macho/macho_file.h"

namespace metaldoctor {
namespace {

constexpr std::uint32_t kExecuteFile = 2;  ///< MH_EXECUTE

/// What the audit has read already is not read again but for the load commands and the signature.
std::optional<Preflight> injection_of(const Tables& tables, const Slice& slice,
                                      const std::string& path) {
  const auto image = Image::read(slice);
  if (!image || image->file_type() != kExecuteFile) return std::nullopt;
  PreflightWorld world;
  world.path = path;
  auto found = preflight(tables, *image, world);
  return found ? std::optional(*std::move(found)) : std::nullopt;
}

Result<AuditedImage> audit_slice(const Tables& tables, const Vocabulary& words, const Slice& slice,
                                 const std::string& path) {
  auto findings = audit(slice, words, path);
  if (!findings) return tl::unexpected(findings.error());
  auto matches = match_apps(tables, slice, path);
  if (!matches) return tl::unexpected(matches.error());
  AuditedImage image;
  image.programs = recognise(tables, *matches, *findings);
  image.findings = std::move(*findings);
  image.injection = injection_of(tables, slice, path);
  return image;
}

}  // namespace

Result<std::vector<AuditedImage>> audit_file(const Tables& tables, const std::string& path,
                                             const std::string& arch,
                                             std::vector<Diagnostic>* unread) {
  auto mapped = MappedFile::open(path);
  if (!mapped) return tl::unexpected(mapped.error());
  auto file = MachOFile::read(mapped->bytes(), path);
  if (!file) return tl::unexpected(file.error());
  const Vocabulary words = vocabulary(tables);
  std::vector<AuditedImage> images;
  for (const Slice& slice : file->slices()) {
    if (!arch.empty() && slice.arch != arch) continue;
    auto image = audit_slice(tables, words, slice, path);
    if (image) {
      images.push_back(std::move(*image));
    } else if (unread != nullptr) {
      unread->push_back(image.error());
    } else {
      return tl::unexpected(image.error());
    }
  }
  if (images.empty() && unread != nullptr && !unread->empty()) {
    Diagnostic first = unread->front();
    unread->erase(unread->begin());
    return tl::unexpected(std::move(first));
  }
  if (images.empty()) {
    return fail(Fault::input, "no-slice", path,
                arch.empty() ? std::string("holds no 64-bit Mach-O image")
                             : fmt::format("holds no {} slice", arch));
  }
  return images;
}

}  // namespace metaldoctor
