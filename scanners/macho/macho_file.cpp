#include "scanners/macho/macho_file.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace metaldoctor {
namespace {

namespace macho = llvm::MachO;

constexpr std::string_view kArchiveMagic = "!<arch>\n";
constexpr std::uint32_t kMaxFatArchs = 64;
constexpr std::size_t kMaxMembers = 200'000;

struct ArchName {
  std::uint32_t type, subtype;
  std::string_view name;
};
constexpr std::array kArchNames = {
    ArchName{macho::CPU_TYPE_ARM64, macho::CPU_SUBTYPE_ARM64_ALL, "arm64"},
    ArchName{macho::CPU_TYPE_ARM64, macho::CPU_SUBTYPE_ARM64_V8, "arm64v8"},
    ArchName{macho::CPU_TYPE_ARM64, macho::CPU_SUBTYPE_ARM64E, "arm64e"},
    ArchName{macho::CPU_TYPE_X86_64, macho::CPU_SUBTYPE_X86_64_ALL, "x86_64"},
    ArchName{macho::CPU_TYPE_X86_64, macho::CPU_SUBTYPE_X86_64_H, "x86_64h"},
};

/// The header of an archive member: decimal text in fixed fields.
struct MemberHeader {
  char name[16], date[12], uid[6], gid[6], mode[8], size[10], end[2];
};
static_assert(sizeof(MemberHeader) == 60);

std::optional<std::uint64_t> decimal(std::string_view field) {
  field = field.substr(0, std::min(field.find(' '), field.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (field.empty() || error != std::errc{} || end != field.data() + field.size()) return {};
  return value;
}

bool is_symbol_table(std::string_view name) {
  return name.starts_with("__.SYMDEF") || name == "/" || name == "//";
}

}  // namespace

std::string arch_name(std::uint32_t cpu_type, std::uint32_t cpu_subtype) {
  const std::uint32_t subtype = cpu_subtype & ~macho::CPU_SUBTYPE_MASK;
  for (const ArchName& row : kArchNames)
    if (row.type == cpu_type && row.subtype == subtype) return std::string(row.name);
  return fmt::format("cpu {:#010x}/{:#010x}", cpu_type, subtype);
}

Container container_of(Bytes bytes) {
  if (bytes.size() >= kArchiveMagic.size() &&
      std::memcmp(bytes.data(), kArchiveMagic.data(), kArchiveMagic.size()) == 0)
    return Container::archive;
  const auto magic = read_at<std::uint32_t>(bytes, 0);
  if (!magic) return Container::unknown;
  if (*magic == macho::MH_MAGIC_64 || *magic == macho::MH_MAGIC) return Container::thin;
  // Java class files share the fat magic; their next word is a version, at least 45 << 0.
  const auto count = read_be<std::uint32_t>(bytes, 4);
  if ((*magic == macho::FAT_CIGAM || *magic == macho::FAT_CIGAM_64) && count && *count < 43)
    return Container::fat;
  return Container::unknown;
}

Result<MachOFile> MachOFile::read(Bytes bytes, std::string name) {
  MachOFile file;
  file.name_ = std::move(name);
  file.container_ = container_of(bytes);
  Result<void> added;
  switch (file.container_) {
    case Container::thin:
      added = file.add_thin(bytes, 0, {});
      break;
    case Container::fat:
      added = file.add_fat(bytes);
      break;
    case Container::archive:
      added = file.add_archive(bytes, 0);
      break;
    case Container::unknown:
      return fail(Fault::input, "macho-not-macho", file.name_,
                  "expected a Mach-O, a fat file or a static archive, found neither magic number");
  }
  if (!added) return tl::unexpected(added.error());
  return file;
}

Result<void> MachOFile::add_thin(Bytes bytes, std::uint64_t offset, std::string member) {
  const auto header = read_at<macho::mach_header_64>(bytes, 0);
  const std::string place = member.empty() ? name_ : fmt::format("{}({})", name_, member);
  if (const auto magic = read_at<std::uint32_t>(bytes, 0); magic && *magic == macho::MH_MAGIC)
    return fail(Fault::input, "macho-32-bit", place,
                "expected a 64-bit Mach-O, found a 32-bit one; no Metal program is 32-bit");
  if (!header)
    return malformed("macho-truncated", place, offset,
                     fmt::format("expected a 32-byte header, found {} bytes", bytes.size()));
  Slice slice;
  slice.cpu_type = header->cputype;
  slice.cpu_subtype = header->cpusubtype;
  slice.arch = arch_name(header->cputype, header->cpusubtype);
  slice.where = fmt::format("{} ({})", place, slice.arch);
  slice.member = std::move(member);
  slice.offset = offset;
  slice.bytes = bytes;
  slices_.push_back(std::move(slice));
  return {};
}

Result<void> MachOFile::add_fat(Bytes bytes) {
  const bool wide = read_at<std::uint32_t>(bytes, 0) == macho::FAT_CIGAM_64;
  const std::uint32_t count = read_be<std::uint32_t>(bytes, 4).value_or(0);
  if (count > kMaxFatArchs)
    return malformed("macho-malformed", name_, 4,
                     fmt::format("expected at most {} slices, found {}", kMaxFatArchs, count));
  const std::uint64_t row_size = wide ? sizeof(macho::fat_arch_64) : sizeof(macho::fat_arch);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;  // offset, end
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t row = sizeof(macho::fat_header) + i * row_size;
    const auto field = [&](std::uint64_t wide_at, std::uint64_t narrow_at) {
      return wide ? read_be<std::uint64_t>(bytes, row + wide_at)
                  : std::optional<std::uint64_t>(read_be<std::uint32_t>(bytes, row + narrow_at));
    };
    const auto offset = field(8, 8), size = field(16, 12);
    const auto body = offset && size ? slice(bytes, *offset, *size) : std::nullopt;
    if (!body)
      return malformed(
          "macho-truncated", name_, row,
          fmt::format("expected slice {} inside the {} bytes of the file, found offset "
                      "{:#x} size {:#x}",
                      i, bytes.size(), offset.value_or(0), size.value_or(0)));
    // dyld refuses it too (mach_o/Universal.cpp, validSlice); 64 slices of one place cost 64 times.
    for (const auto& [begin, end] : taken)
      if (*offset < end && begin < *offset + *size)
        return malformed("macho-malformed", name_, row,
                         fmt::format("expected slice {} apart from the others, found offset {:#x} "
                                     "size {:#x}",
                                     i, *offset, *size));
    taken.emplace_back(*offset, *offset + *size);
    switch (container_of(*body)) {
      case Container::thin:
        if (auto added = add_thin(*body, *offset, {}); !added) return added;
        break;
      case Container::archive:
        if (auto added = add_archive(*body, *offset); !added) return added;
        break;
      default:
        return malformed("macho-malformed", name_, *offset,
                         fmt::format("expected slice {} to be a Mach-O or an archive", i));
    }
  }
  return {};
}

Result<void> MachOFile::add_archive(Bytes bytes, std::uint64_t offset) {
  std::uint64_t at = kArchiveMagic.size();
  for (std::size_t members = 0; at < bytes.size(); ++members) {
    const auto header = read_at<MemberHeader>(bytes, at);
    if (!header || header->end[0] != '`' || header->end[1] != '\n' || members > kMaxMembers)
      return malformed("archive-malformed", name_, offset + at,
                       "expected a 60-byte archive member header");
    const auto size = decimal({header->size, sizeof(header->size)});
    const std::uint64_t start = at + sizeof(MemberHeader);
    if (!size || !fits(bytes.size(), start, *size))
      return malformed(
          "archive-malformed", name_, offset + at + 48,
          fmt::format("expected a member size of at most {}, found \"{}\"", bytes.size() - start,
                      std::string_view(header->size, sizeof(header->size))));
    Bytes body = bytes.subspan(start, *size);
    std::string_view name(header->name, strnlen(header->name, sizeof(header->name)));
    name = name.substr(0, name.find_last_not_of(' ') + 1);
    // BSD: "#1/N", and the name is the first N bytes of the member.
    if (name.starts_with("#1/")) {
      const auto length = decimal(name.substr(3));
      if (!length || *length > body.size())
        return malformed("archive-malformed", name_, offset + at,
                         "expected the length of the member's name to fit the member");
      const auto* text = reinterpret_cast<const char*>(body.data());
      name = {text, strnlen(text, *length)};
      body = body.subspan(*length);
    }
    if (!is_symbol_table(name) && container_of(body) == Container::thin)
      if (auto added = add_thin(body, offset + start + (*size - body.size()), std::string(name));
          !added)
        return added;
    at = start + *size + (*size & 1);
  }
  return {};
}

}  // namespace metaldoctor
