// The one walk over the load commands. dyld refuses most of what is refused here (dyld's
// mach_o/Header.cpp, validLoadCommands and validSegments); what it accepts, this accepts.
#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <algorithm>
#include <numeric>

#include "scanners/macho/image.h"

namespace metaldoctor {
namespace macho = llvm::MachO;

namespace {

constexpr std::uint32_t kMaxCommands = 65'536;
constexpr std::size_t kMaxSections = 65'536;
constexpr std::size_t kMaxSegments = 256;  // looked through for every pointer

OsVersion packed_version(std::uint32_t packed) {
  return {static_cast<int>(packed >> 16), static_cast<int>((packed >> 8) & 0xff),
          static_cast<int>(packed & 0xff)};
}

}  // namespace

class LoadCommands {
 public:
  explicit LoadCommands(Image& image) : image_(image), bytes_(image.slice_.bytes) {}

  Result<void> walk();

 private:
  using Handler = Result<void> (LoadCommands::*)(std::uint64_t at, Bytes command);
  struct Row {
    std::uint32_t command;
    Handler handler;
  };
  static const Row kRows[];

  Result<void> segment(std::uint64_t at, Bytes command);
  Result<void> section(std::uint64_t at, const macho::section_64& raw);
  Result<void> symtab(std::uint64_t at, Bytes command);
  Result<void> dysymtab(std::uint64_t at, Bytes command);
  Result<void> dyld_info(std::uint64_t at, Bytes command);
  Result<void> linkedit_data(std::uint64_t at, Bytes command);
  Result<void> dylib(std::uint64_t at, Bytes command);
  Result<void> uuid(std::uint64_t at, Bytes command);
  Result<void> build_version(std::uint64_t at, Bytes command);
  Result<void> version_min(std::uint64_t at, Bytes command);
  Result<void> encryption(std::uint64_t at, Bytes command);
  Result<void> main(std::uint64_t at, Bytes command);
  Result<void> routines(std::uint64_t at, Bytes command);
  void finish();

  /// Stores a range after checking that it lies in the slice.
  Result<void> range(std::uint64_t at, std::string_view what, std::uint64_t offset,
                     std::uint64_t size, Range& out) const;
  tl::unexpected<Diagnostic> bad(std::uint64_t at, std::string what) const {
    return malformed("macho-malformed", image_.where(), at, std::move(what));
  }
  template <typename T>
  Result<T> as(std::uint64_t at, Bytes command) const {
    if (auto value = read_at<T>(command, 0)) return *value;
    return bad(at, fmt::format("expected a load command of at least {} bytes, found {}", sizeof(T),
                               command.size()));
  }

  Image& image_;
  Bytes bytes_;
};

// LLVM names LC_SEGMENT_64 and the rest by LC_*.
const LoadCommands::Row LoadCommands::kRows[] = {
    {macho::LC_SEGMENT_64, &LoadCommands::segment},
    {macho::LC_SYMTAB, &LoadCommands::symtab},
    {macho::LC_DYSYMTAB, &LoadCommands::dysymtab},
    {macho::LC_DYLD_INFO, &LoadCommands::dyld_info},
    {macho::LC_DYLD_INFO_ONLY, &LoadCommands::dyld_info},
    {macho::LC_DYLD_CHAINED_FIXUPS, &LoadCommands::linkedit_data},
    {macho::LC_DYLD_EXPORTS_TRIE, &LoadCommands::linkedit_data},
    {macho::LC_FUNCTION_STARTS, &LoadCommands::linkedit_data},
    {macho::LC_CODE_SIGNATURE, &LoadCommands::linkedit_data},
    {macho::LC_LOAD_DYLIB, &LoadCommands::dylib},
    {macho::LC_LOAD_WEAK_DYLIB, &LoadCommands::dylib},
    {macho::LC_REEXPORT_DYLIB, &LoadCommands::dylib},
    {macho::LC_LOAD_UPWARD_DYLIB, &LoadCommands::dylib},
    {macho::LC_LAZY_LOAD_DYLIB, &LoadCommands::dylib},
    {macho::LC_ID_DYLIB, &LoadCommands::dylib},
    {macho::LC_UUID, &LoadCommands::uuid},
    {macho::LC_BUILD_VERSION, &LoadCommands::build_version},
    {macho::LC_VERSION_MIN_MACOSX, &LoadCommands::version_min},
    {macho::LC_VERSION_MIN_IPHONEOS, &LoadCommands::version_min},
    {macho::LC_ENCRYPTION_INFO_64, &LoadCommands::encryption},
    {macho::LC_MAIN, &LoadCommands::main},
    {macho::LC_ROUTINES_64, &LoadCommands::routines},
};

Result<void> LoadCommands::walk() {
  const auto header = read_at<macho::mach_header_64>(bytes_, 0);
  if (!header || header->magic != macho::MH_MAGIC_64)
    return bad(0, "expected a 64-bit Mach-O header");
  image_.file_type_ = header->filetype;
  image_.flags_ = header->flags;
  const auto commands = slice(bytes_, sizeof(*header), header->sizeofcmds);
  if (!commands || header->ncmds > kMaxCommands)
    return bad(16, fmt::format("expected at most {} load commands in {} bytes, found {} in {}",
                               kMaxCommands, bytes_.size() - sizeof(*header), header->ncmds,
                               header->sizeofcmds));
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < header->ncmds; ++i) {
    const std::uint64_t where = sizeof(*header) + at;
    const auto command = read_at<macho::load_command>(*commands, at);
    const auto body = command ? slice(*commands, at, command->cmdsize) : std::nullopt;
    if (!body || command->cmdsize < sizeof(*command))
      return bad(where,
                 fmt::format("expected load command {} of {} inside the {} bytes of load "
                             "commands, found size {}",
                             i, header->ncmds, commands->size(), command ? command->cmdsize : 0));
    for (const Row& row : kRows)
      if (row.command == command->cmd)
        if (auto done = (this->*row.handler)(where, *body); !done) return done;
    at += command->cmdsize;
  }
  finish();
  return {};
}

Result<void> LoadCommands::range(std::uint64_t at, std::string_view what, std::uint64_t offset,
                                 std::uint64_t size, Range& out) const {
  if (size && !fits(bytes_.size(), offset, size))
    return bad(at, fmt::format("expected the {} inside the {:#x} bytes of the slice, found offset "
                               "{:#x} size {:#x}",
                               what, bytes_.size(), offset, size));
  out = size ? Range{offset, size} : Range{};
  return {};
}

Result<void> LoadCommands::segment(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::segment_command_64>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  if (image_.segments_.size() == kMaxSegments)
    return bad(at, fmt::format("expected at most {} segments", kMaxSegments));
  Range file;
  if (auto ok = range(at, "segment", raw->fileoff, raw->filesize, file); !ok) return ok;
  if (raw->vmsize > UINT64_MAX - raw->vmaddr)
    return bad(at, fmt::format("expected a segment inside the address space, found {:#x}+{:#x}",
                               raw->vmaddr, raw->vmsize));
  // Views into the file, so that names live as long as its bytes.
  const char* name =
      reinterpret_cast<const char*>(command.data()) + offsetof(macho::segment_command_64, segname);
  image_.segments_.push_back({fixed_name(name, 16), raw->vmaddr, raw->vmsize, file.offset,
                              file.size, raw->initprot, raw->maxprot, raw->flags});
  const std::uint64_t table = std::uint64_t{raw->nsects} * sizeof(macho::section_64);
  if (!fits(command.size(), sizeof(*raw), table) ||
      image_.sections_.size() + raw->nsects > kMaxSections)
    return bad(at, fmt::format("expected {} section headers in a load command of {} bytes",
                               raw->nsects, command.size()));
  for (std::uint32_t i = 0; i < raw->nsects; ++i) {
    const std::uint64_t offset = sizeof(*raw) + i * sizeof(macho::section_64);
    const auto entry = read_at<macho::section_64>(command, offset);
    if (auto ok = section(at + offset, *entry); !ok) return ok;
  }
  return {};
}

Result<void> LoadCommands::section(std::uint64_t at, const macho::section_64& raw) {
  Section section;
  const char* names = reinterpret_cast<const char*>(bytes_.data() + at);
  section.name = fixed_name(names, 16);
  section.segment = fixed_name(names + 16, 16);
  section.address = raw.addr;
  section.size = raw.size;
  section.type = raw.flags & macho::SECTION_TYPE;
  section.attributes = raw.flags & macho::SECTION_ATTRIBUTES;
  section.reserved1 = raw.reserved1;
  section.reserved2 = raw.reserved2;
  section.relocation_offset = raw.reloff;
  section.relocation_count = raw.nreloc;
  if (raw.size > UINT64_MAX - raw.addr)
    return bad(at, fmt::format("expected a section inside the address space, found {:#x}+{:#x}",
                               raw.addr, raw.size));
  const bool zero_fill = section.type == macho::S_ZEROFILL ||
                         section.type == macho::S_GB_ZEROFILL ||
                         section.type == macho::S_THREAD_LOCAL_ZEROFILL;
  if (!zero_fill) {
    Range file;
    const std::string what = fmt::format("section {},{}", section.segment, section.name);
    if (auto ok = range(at, what, raw.offset, raw.size, file); !ok) return ok;
    section.file_offset = file.offset;
    section.bytes = image_.part(file);
  }
  image_.sections_.push_back(section);
  return {};
}

Result<void> LoadCommands::symtab(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::symtab_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  auto& linkedit = image_.linkedit_;
  const std::uint64_t size = std::uint64_t{raw->nsyms} * sizeof(macho::nlist_64);
  if (auto ok = range(at, "symbol table", raw->symoff, size, linkedit.symbols); !ok) return ok;
  return range(at, "string table", raw->stroff, raw->strsize, linkedit.strings);
}

Result<void> LoadCommands::dysymtab(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::dysymtab_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  return range(at, "indirect symbol table", raw->indirectsymoff,
               std::uint64_t{raw->nindirectsyms} * 4, image_.linkedit_.indirect_symbols);
}

Result<void> LoadCommands::dyld_info(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::dyld_info_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  auto& linkedit = image_.linkedit_;
  linkedit.has_dyld_info = true;
  struct Part {
    std::string_view name;
    std::uint32_t offset, size;
    Range& out;
  };
  for (const Part& part :
       {Part{"rebase opcodes", raw->rebase_off, raw->rebase_size, linkedit.rebase},
        Part{"bind opcodes", raw->bind_off, raw->bind_size, linkedit.bind},
        Part{"weak bind opcodes", raw->weak_bind_off, raw->weak_bind_size, linkedit.weak_bind},
        Part{"lazy bind opcodes", raw->lazy_bind_off, raw->lazy_bind_size, linkedit.lazy_bind},
        Part{"exports trie", raw->export_off, raw->export_size, linkedit.exports_trie}})
    if (auto ok = range(at, part.name, part.offset, part.size, part.out); !ok) return ok;
  return {};
}

Result<void> LoadCommands::linkedit_data(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::linkedit_data_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  auto& linkedit = image_.linkedit_;
  switch (raw->cmd) {
    case macho::LC_DYLD_CHAINED_FIXUPS:
      return range(at, "chained fixups", raw->dataoff, raw->datasize, linkedit.chained_fixups);
    case macho::LC_DYLD_EXPORTS_TRIE:
      return range(at, "exports trie", raw->dataoff, raw->datasize, linkedit.exports_trie);
    case macho::LC_FUNCTION_STARTS:
      return range(at, "function starts", raw->dataoff, raw->datasize, linkedit.function_starts);
    default:
      return range(at, "code signature", raw->dataoff, raw->datasize, linkedit.code_signature);
  }
}

Result<void> LoadCommands::dylib(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::dylib_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  const auto path = cstring_at(command, raw->dylib.name);
  if (!path || raw->dylib.name < sizeof(*raw))
    return bad(at, fmt::format("expected a library name inside the load command, found offset {}",
                               raw->dylib.name));
  if (raw->cmd == macho::LC_ID_DYLIB) {
    image_.install_name_ = *path;
    return {};
  }
  Dylib dylib{*path, Dylib::Kind::normal};
  if (raw->cmd == macho::LC_LOAD_WEAK_DYLIB) dylib.kind = Dylib::Kind::weak;
  if (raw->cmd == macho::LC_REEXPORT_DYLIB) dylib.kind = Dylib::Kind::reexport;
  if (raw->cmd == macho::LC_LOAD_UPWARD_DYLIB) dylib.kind = Dylib::Kind::upward;
  if (raw->cmd == macho::LC_LAZY_LOAD_DYLIB) dylib.kind = Dylib::Kind::lazy;
  image_.dylibs_.push_back(dylib);
  return {};
}

Result<void> LoadCommands::uuid(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::uuid_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  image_.uuid_.emplace();
  std::copy_n(raw->uuid, 16, image_.uuid_->begin());
  return {};
}

Result<void> LoadCommands::build_version(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::build_version_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  image_.build_ = BuildVersion{raw->platform, packed_version(raw->minos), packed_version(raw->sdk)};
  return {};
}

Result<void> LoadCommands::routines(std::uint64_t, Bytes) {
  image_.has_init_routine_ = true;
  return {};
}

Result<void> LoadCommands::version_min(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::version_min_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  const auto platform =
      raw->cmd == macho::LC_VERSION_MIN_MACOSX ? macho::PLATFORM_MACOS : macho::PLATFORM_IOS;
  image_.build_ = BuildVersion{static_cast<std::uint32_t>(platform), packed_version(raw->version),
                               packed_version(raw->sdk)};
  return {};
}

Result<void> LoadCommands::encryption(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::encryption_info_command_64>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  image_.encrypted_ = raw->cryptid != 0;
  return {};
}

Result<void> LoadCommands::main(std::uint64_t at, Bytes command) {
  const auto raw = as<macho::entry_point_command>(at, command);
  if (!raw) return tl::unexpected(raw.error());
  image_.entry_offset_ = raw->entryoff;
  return {};
}

void LoadCommands::finish() {
  auto& order = image_.by_address_;
  order.resize(image_.sections_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(image_.sections_[a].address, a) < std::pair(image_.sections_[b].address, b);
  });
  // The header lies at the start of the segment that maps file offset 0.
  for (const Segment& segment : image_.segments_)
    if (segment.file_offset == 0 && segment.file_size != 0) {
      image_.base_ = segment.vm_address;
      break;
    }
}

Result<Image> Image::read(const Slice& slice) {
  Image image;
  image.slice_ = slice;
  if (auto walked = LoadCommands(image).walk(); !walked) return tl::unexpected(walked.error());
  return image;
}

}  // namespace metaldoctor
