#include "scanners/macho/code_signature.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

namespace metaldoctor {
namespace macho = llvm::MachO;

namespace {

constexpr std::uint32_t kMaxBlobs = 256;
constexpr std::uint32_t kEntitlementsMagic = 0xfade7171;
constexpr std::uint32_t kDerEntitlementsMagic = 0xfade7172;
constexpr std::uint32_t kCmsMagic = 0xfade0b01;
constexpr std::uint32_t kSupportsTeamId = 0x20200;

class SignatureReader {
 public:
  SignatureReader(Bytes blob, const std::string& where, std::uint64_t offset)
      : blob_(blob), where_(where), offset_(offset) {}

  Result<CodeSignature> read() {
    const auto magic = read_be<std::uint32_t>(blob_, 0);
    const auto length = read_be<std::uint32_t>(blob_, 4);
    const auto count = read_be<std::uint32_t>(blob_, 8);
    if (!count || *magic != macho::CSMAGIC_EMBEDDED_SIGNATURE || *length > blob_.size() ||
        *count > kMaxBlobs)
      return bad(0, fmt::format("expected an embedded signature of at most {} bytes and {} parts, "
                                "found magic {:#x}, {} bytes, {} parts",
                                blob_.size(), kMaxBlobs, magic.value_or(0), length.value_or(0),
                                count.value_or(0)));
    blob_ = blob_.first(*length);
    for (std::uint32_t i = 0; i < *count; ++i) {
      const auto at = read_be<std::uint32_t>(blob_, 12 + std::uint64_t{i} * 8 + 4);
      const auto size = at ? read_be<std::uint32_t>(blob_, std::uint64_t{*at} + 4) : std::nullopt;
      const auto part = size ? slice(blob_, *at, *size) : std::nullopt;
      if (!part || *size < 8)
        return bad(12 + i * 8, fmt::format("expected part {} inside the {} bytes of the signature",
                                           i, blob_.size()));
      if (auto ok = this->part(*at, *part); !ok) return tl::unexpected(ok.error());
    }
    if (out_.code_directories == 0) return bad(0, "expected a code directory, found none");
    return out_;
  }

 private:
  Result<void> part(std::uint64_t at, Bytes part) {
    switch (read_be<std::uint32_t>(part, 0).value_or(0)) {
      case macho::CSMAGIC_CODEDIRECTORY:
        return code_directory(at, part);
      case kEntitlementsMagic:
        out_.entitlements = {reinterpret_cast<const char*>(part.data()) + 8, part.size() - 8};
        return {};
      case kDerEntitlementsMagic:
        out_.entitlements_der = part.subspan(8);
        return {};
      case kCmsMagic:
        out_.has_cms = part.size() > 8;
        return {};
      default:
        return {};  // requirements, launch constraints: not read
    }
  }

  Result<void> code_directory(std::uint64_t at, Bytes part) {
    const auto version = read_be<std::uint32_t>(part, 8);
    const auto flags = read_be<std::uint32_t>(part, 12);
    const auto identifier_at = read_be<std::uint32_t>(part, 20);
    const auto hash_type = read_at<std::uint8_t>(part, 37);
    const auto identifier = identifier_at ? cstring_at(part, *identifier_at) : std::nullopt;
    if (!hash_type || !identifier)
      return bad(at, "expected a code directory with an identifier that ends inside it");
    std::string_view team;
    if (*version >= kSupportsTeamId) {
      const auto team_at = read_be<std::uint32_t>(part, 48);
      const auto text = team_at && *team_at ? cstring_at(part, *team_at) : std::nullopt;
      if (!team_at || (*team_at && !text))
        return bad(at, "expected a team identifier that ends inside its code directory");
      team = text.value_or(std::string_view{});
    }
    // Alternate directories differ in the hash only; the kernel takes the strongest.
    if (out_.code_directories++ == 0 || *hash_type > out_.hash_type) {
      out_.flags = *flags;
      out_.identifier = *identifier;
      out_.team_id = team;
      out_.hash_type = *hash_type;
      out_.platform = read_at<std::uint8_t>(part, 38).value_or(0);
    }
    return {};
  }

  tl::unexpected<Diagnostic> bad(std::uint64_t at, std::string what) const {
    return malformed("code-signature-malformed", where_, offset_ + at, std::move(what));
  }

  Bytes blob_;
  const std::string& where_;
  std::uint64_t offset_;
  CodeSignature out_;
};

}  // namespace

Result<CodeSignature> parse_code_signature(Bytes blob, const std::string& where,
                                           std::uint64_t offset) {
  return SignatureReader(blob, where, offset).read();
}

Result<std::optional<CodeSignature>> read_code_signature(const Image& image) {
  const Range range = image.linkedit().code_signature;
  if (!range.size) return std::nullopt;
  auto signature = parse_code_signature(image.part(range), image.where(), range.offset);
  if (!signature) return tl::unexpected(signature.error());
  return std::optional<CodeSignature>(*signature);
}

}  // namespace metaldoctor
