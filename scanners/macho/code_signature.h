#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "scanners/macho/image.h"

namespace metaldoctor {

/// LC_CODE_SIGNATURE: what decides whether a library may be injected. Hashes are not checked here.
struct CodeSignature {
  std::uint32_t flags = 0;  ///< CS_ADHOC 0x2, CS_RUNTIME 0x10000, CS_LINKER_SIGNED 0x20000 ...
  std::string_view identifier;
  std::string_view team_id;    ///< empty = none
  std::uint8_t platform = 0;   ///< not 0: part of an operating system of Apple's
  std::uint8_t hash_type = 0;  ///< of the best code directory; 2 = SHA-256
  unsigned code_directories = 0;
  bool has_cms = false;           ///< a CMS blob with content: signed by an identity
  std::string_view entitlements;  ///< XML text; empty = none
  Bytes entitlements_der;         ///< empty = none

  bool is_adhoc() const { return flags & 0x2; }
  bool is_hardened() const { return flags & 0x10000; }
  bool is_linker_signed() const { return flags & 0x20000; }
  bool requires_library_validation() const { return flags & 0x2000; }
  bool is_restricted() const { return flags & 0x800; }
};

/// None if the image is not signed.
Result<std::optional<CodeSignature>> read_code_signature(const Image& image);
/// The same for the superblob alone; `where` and `offset` are for messages.
Result<CodeSignature> parse_code_signature(Bytes blob, const std::string& where,
                                           std::uint64_t offset);

}  // namespace metaldoctor
