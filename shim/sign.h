#pragma once
// Ad-hoc code signatures of Mach-O slices, byte for byte as ld64.lld writes them: one SHA-256
// CodeDirectory of version 0x20400 with 4096-byte pages (xnu osfmk/kern/cs_blobs.h; lld
// CodeSignatureSection). Nothing is a secret in them: they only say that no byte was changed.
#include <span>
#include <string>
#include <vector>

#include "scanners/macho/image.h"
#include "tables/diagnostic.h"

namespace metaldoctor {

inline constexpr std::uint32_t kAdhoc = 0x2;             ///< CS_ADHOC
inline constexpr std::uint32_t kLinkerSigned = 0x20000;  ///< CS_LINKER_SIGNED

/// The signature of everything before it. Its size is that of the one that is there already.
Result<std::vector<std::uint8_t>> adhoc_signature(const Image& image, std::string_view identifier,
                                                  std::uint32_t flags);

/// Signs a thin file in place, under the identifier that it has.
Result<void> sign_adhoc(std::span<std::uint8_t> file, const std::string& where,
                        std::uint32_t flags);

/// What the pages of an image say about its signature, whoever made it.
struct SignatureCheck {
  std::size_t pages = 0;
  std::vector<std::size_t> wrong_pages;
  std::string cdhash;        ///< first 20 bytes of the SHA-256 of the code directory, in hex
  bool covers_file = false;  ///< every byte before the signature lies in a page
};
/// Refused are images without a signature, and with one that has no SHA-256 code directory.
Result<SignatureCheck> check_signature(const Image& image);

}  // namespace metaldoctor
