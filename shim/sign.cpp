#include "shim/sign.h"

#include <fmt/format.h>

#include <algorithm>

#include "scanners/macho/code_signature.h"
#include "scanners/macho/sha256.h"

namespace metaldoctor {
namespace {

constexpr std::uint32_t kSuperBlobMagic = 0xfade0cc0, kDirectoryMagic = 0xfade0c02;
constexpr std::uint32_t kVersion = 0x20400;
constexpr std::uint32_t kDirectoryHeader = 88;  ///< bytes before the identifier
constexpr std::uint32_t kDirectoryOffset = 24;  ///< superblob, one index entry, aligned to 8
constexpr std::uint8_t kSha256Type = 2;
constexpr std::uint32_t kPageShift = 12;
constexpr std::uint32_t kMostBlobs = 64;
constexpr std::uint32_t kExecutable = 2;  ///< MH_EXECUTE

class BigEndian {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(value); }
  void u32(std::uint64_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) u8(static_cast<std::uint8_t>(value >> shift));
  }
  void u64(std::uint64_t value) {
    u32(value >> 32);
    u32(value & 0xffffffff);
  }
  void append(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void pad_to(std::size_t size) { bytes_.resize(std::max(size, bytes_.size())); }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

Bytes page(Bytes file, std::uint64_t index, std::uint32_t shift, std::uint64_t limit) {
  const std::uint64_t begin = index << shift;
  return file.subspan(begin, std::min(std::uint64_t{1} << shift, limit - begin));
}

tl::unexpected<Diagnostic> unsigned_image(const Image& image, std::string what) {
  return fail(Fault::input, "signature-unusable", image.where(), std::move(what));
}

/// The fields of a code directory that its pages are checked against; all bounds are checked.
struct Directory {
  Bytes bytes;
  std::uint64_t limit = 0;
  std::uint32_t hashes = 0, slots = 0, shift = 0;
};

std::optional<Directory> read_directory(Bytes blob, Bytes file) {
  const auto length = read_be<std::uint32_t>(blob, 4);
  if (read_be<std::uint32_t>(blob, 0) != kDirectoryMagic || !length) return std::nullopt;
  const auto bytes = slice(blob, 0, *length);
  if (!bytes || bytes->size() < 44) return std::nullopt;
  Directory out{*bytes, *read_be<std::uint32_t>(*bytes, 32), *read_be<std::uint32_t>(*bytes, 16),
                *read_be<std::uint32_t>(*bytes, 28), (*bytes)[39]};
  const bool is_sha256 = (*bytes)[36] == 32 && (*bytes)[37] == kSha256Type;
  if (!is_sha256 || out.shift < 12 || out.shift > 14 || out.limit > file.size()) {
    return std::nullopt;
  }
  const std::uint64_t pages = (out.limit + (1u << out.shift) - 1) >> out.shift;
  if (out.slots != pages || !fits(bytes->size(), out.hashes, std::uint64_t{out.slots} * 32)) {
    return std::nullopt;
  }
  return out;
}

std::optional<Directory> find_directory(const Image& image) {
  const Bytes blob = image.part(image.linkedit().code_signature);
  const auto count = read_be<std::uint32_t>(blob, 8);
  if (read_be<std::uint32_t>(blob, 0) != kSuperBlobMagic || !count) return std::nullopt;
  for (std::uint32_t i = 0; i < std::min(*count, kMostBlobs); ++i) {
    const auto offset = read_be<std::uint32_t>(blob, 16 + 8 * i);
    const auto rest =
        offset && *offset <= blob.size() ? std::optional(blob.subspan(*offset)) : std::nullopt;
    if (!rest) continue;
    if (auto directory = read_directory(*rest, image.slice().bytes)) return directory;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::uint8_t>> adhoc_signature(const Image& image, std::string_view identifier,
                                                  std::uint32_t flags) {
  const Range where = image.linkedit().code_signature;
  const Segment* text = image.segment("__TEXT");
  if (where.size == 0 || !text) return unsigned_image(image, "it has no signature to renew");
  const Bytes file = image.slice().bytes;
  const std::uint64_t pages = (where.offset + (1u << kPageShift) - 1) >> kPageShift;
  // lld pads the identifier so that the hashes start at a multiple of 16 from the superblob.
  const std::uint64_t named = kDirectoryOffset + kDirectoryHeader + identifier.size() + 1;
  const std::uint64_t headers = (named + 15) / 16 * 16;
  const std::uint64_t size = headers + pages * 32;
  if (size != where.size) {
    return unsigned_image(
        image, fmt::format("its signature has {} bytes, one of ours has {}", where.size, size));
  }
  BigEndian out;
  for (const std::uint64_t value : {std::uint64_t{kSuperBlobMagic}, size, std::uint64_t{1},
                                    std::uint64_t{0}, std::uint64_t{kDirectoryOffset}}) {
    out.u32(value);
  }
  out.pad_to(kDirectoryOffset);
  for (const std::uint64_t value :
       {std::uint64_t{kDirectoryMagic}, size - kDirectoryOffset, std::uint64_t{kVersion},
        std::uint64_t{flags}, headers - kDirectoryOffset, std::uint64_t{kDirectoryHeader},
        std::uint64_t{0} /* special slots */, pages, where.offset}) {
    out.u32(value);
  }
  for (const std::uint8_t value : {std::uint8_t{32}, kSha256Type, std::uint8_t{0} /* platform */,
                                   static_cast<std::uint8_t>(kPageShift)}) {
    out.u8(value);
  }
  for (int i = 0; i < 4; ++i) out.u32(0);  // spare2, scatterOffset, teamOffset, spare3
  out.u64(0);                              // codeLimit64
  out.u64(text->file_offset);
  out.u64(text->file_size);
  out.u64(image.file_type() == kExecutable ? 1 : 0);  // CS_EXECSEG_MAIN_BINARY
  out.append({reinterpret_cast<const std::uint8_t*>(identifier.data()), identifier.size()});
  out.pad_to(headers);
  for (std::uint64_t i = 0; i < pages; ++i) {
    out.append(sha256(page(file, i, kPageShift, where.offset)));
  }
  return out.take();
}

Result<void> sign_adhoc(std::span<std::uint8_t> file, const std::string& where,
                        std::uint32_t flags) {
  const auto slices = MachOFile::read(file, where);
  if (!slices) return tl::unexpected(slices.error());
  if (slices->container() != Container::thin || slices->slices().size() != 1) {
    return fail(Fault::input, "signature-unusable", where, "one architecture is signed at a time");
  }
  const auto image = Image::read(slices->slices()[0]);
  if (!image) return tl::unexpected(image.error());
  const auto old = read_code_signature(*image);
  if (!old) return tl::unexpected(old.error());
  if (!*old) return unsigned_image(*image, "it has no signature to renew");
  const auto fresh = adhoc_signature(*image, (*old)->identifier, flags);
  if (!fresh) return tl::unexpected(fresh.error());
  std::ranges::copy(
      *fresh, file.begin() + static_cast<std::ptrdiff_t>(image->linkedit().code_signature.offset));
  return {};
}

Result<SignatureCheck> check_signature(const Image& image) {
  if (image.linkedit().code_signature.size == 0) return unsigned_image(image, "it is not signed");
  const auto directory = find_directory(image);
  if (!directory) {
    return unsigned_image(image, "its signature has no well-formed SHA-256 code directory");
  }
  SignatureCheck out;
  out.pages = directory->slots;
  out.cdhash = hex(sha256(directory->bytes)).substr(0, 40);
  out.covers_file = directory->limit == image.linkedit().code_signature.offset;
  for (std::uint32_t i = 0; i < directory->slots; ++i) {
    const Sha256 actual = sha256(page(image.slice().bytes, i, directory->shift, directory->limit));
    const Bytes stored = directory->bytes.subspan(directory->hashes + std::size_t{i} * 32, 32);
    if (!std::ranges::equal(actual, stored)) out.wrong_pages.push_back(i);
  }
  return out;
}

}  // namespace metaldoctor
