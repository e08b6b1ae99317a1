#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/macho/bytes.h"
#include "scanners/macho/macho_file.h"
#include "tables/os_version.h"

namespace metaldoctor {

struct Segment {
  std::string_view name;
  std::uint64_t vm_address = 0, vm_size = 0;
  std::uint64_t file_offset = 0, file_size = 0;  ///< in the slice; checked
  std::uint32_t init_protection = 0, max_protection = 0, flags = 0;
};

struct Section {
  std::string_view segment, name;
  std::uint64_t address = 0, size = 0;
  std::uint64_t file_offset = 0;  ///< 0 for zero-fill
  std::uint32_t type = 0;         ///< S_REGULAR ..., the low byte of flags
  std::uint32_t attributes = 0;   ///< S_ATTR_...
  std::uint32_t reserved1 = 0, reserved2 = 0;
  std::uint32_t relocation_offset = 0, relocation_count = 0;
  Bytes bytes;  ///< empty for zero-fill

  bool is_code() const;
  bool contains(std::uint64_t vm) const { return vm >= address && vm - address < size; }
};

struct Dylib {
  std::string_view path;
  enum class Kind { normal, weak, reexport, upward, lazy } kind = Kind::normal;
};

/// LC_BUILD_VERSION or LC_VERSION_MIN_*.
struct BuildVersion {
  std::uint32_t platform = 0;  ///< PLATFORM_MACOS = 1 ...
  OsVersion minimum, sdk;
};

/// Where a linkedit part lies in the slice; size 0 = absent. Checked against the slice.
struct Range {
  std::uint64_t offset = 0, size = 0;
};

/// A symbol of LC_SYMTAB. The name is empty when its string lies outside the string table or is
/// longer than Image::kMaxText.
struct Symbol {
  std::string_view name;
  std::uint64_t value = 0;
  std::uint8_t type = 0;     ///< n_type
  std::uint8_t section = 0;  ///< 1-based; 0 = none
  std::uint16_t description = 0;

  bool is_defined_in_section() const;
  bool is_undefined() const;
};

/// A Mach-O slice: load commands walked once, every offset and size checked against the slice
/// before anything else uses it. Views into the slice's bytes, which must outlive the image.
class Image {
 public:
  static Result<Image> read(const Slice& slice);

  const Slice& slice() const { return slice_; }
  const std::string& where() const { return slice_.where; }
  std::uint32_t file_type() const { return file_type_; }  ///< MH_EXECUTE ...
  std::uint32_t flags() const { return flags_; }
  bool is_object() const;
  bool is_arm64() const;
  bool is_x86_64() const;

  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* section(std::string_view segment, std::string_view name) const;
  const Section* section_at(std::uint64_t vm) const;
  const Segment* segment(std::string_view name) const;
  /// Address of the Mach-O header: what offsets in fixups and function starts are relative to.
  std::uint64_t base() const { return base_; }

  const std::optional<std::array<std::uint8_t, 16>>& uuid() const { return uuid_; }
  std::string uuid_text() const;  ///< "8A5B...-...", empty if there is none
  const std::optional<BuildVersion>& build() const { return build_; }
  const std::vector<Dylib>& dylibs() const { return dylibs_; }
  std::string_view install_name() const { return install_name_; }
  bool encrypted() const { return encrypted_; }
  /// LC_ROUTINES_64: an initialiser besides those of the sections (ld's -init).
  bool has_init_routine() const { return has_init_routine_; }
  /// LC_MAIN: where main() lies, relative to base(). Not checked.
  const std::optional<std::uint64_t>& entry_offset() const { return entry_offset_; }

  struct LinkEdit {
    Range chained_fixups, exports_trie, function_starts, code_signature;
    Range rebase, bind, weak_bind, lazy_bind;
    Range symbols, strings, indirect_symbols;  ///< symbols: nlist_64 array; indirect: u32 array
    bool has_dyld_info = false;
  };
  const LinkEdit& linkedit() const { return linkedit_; }
  Bytes part(Range range) const { return slice_.bytes.subspan(range.offset, range.size); }

  std::uint32_t symbol_count() const;
  Symbol symbol(std::uint32_t index) const;  ///< index < symbol_count()
  std::optional<std::uint32_t> indirect_symbol(std::uint64_t index) const;

  /// Bytes of the file behind a virtual address: from there to the end of its section.
  std::optional<Bytes> bytes_from(std::uint64_t vm) const;
  template <typename T>
  std::optional<T> value_at(std::uint64_t vm) const {
    const auto bytes = bytes_from(vm);
    return bytes ? read_at<T>(*bytes, 0) : std::nullopt;
  }
  /// A NUL-terminated string that ends in its section and is shorter than kMaxText.
  std::optional<std::string_view> string_at(std::uint64_t vm) const;
  static constexpr std::size_t kMaxText = 1024;
  /// True if `vm` lies in a segment that is mapped (not __PAGEZERO).
  bool maps(std::uint64_t vm) const;

 private:
  friend class LoadCommands;
  Slice slice_;
  std::uint32_t file_type_ = 0, flags_ = 0;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  std::vector<std::uint32_t> by_address_;  ///< indices of sections_, sorted by address
  std::uint64_t base_ = 0;
  std::optional<std::array<std::uint8_t, 16>> uuid_;
  std::optional<BuildVersion> build_;
  std::vector<Dylib> dylibs_;
  std::string_view install_name_;
  bool encrypted_ = false;
  bool has_init_routine_ = false;
  std::optional<std::uint64_t> entry_offset_;
  LinkEdit linkedit_;
};

}  // namespace metaldoctor
