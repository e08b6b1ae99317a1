#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace metaldoctor::testing {

/// Appends little-endian numbers and strings.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& put(T value) {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof(T));
    return *this;
  }
  ByteWriter& text(std::string_view value) {
    bytes.insert(bytes.end(), value.begin(), value.end());
    bytes.push_back(0);
    return *this;
  }
  ByteWriter& name16(std::string_view value) {
    for (std::size_t i = 0; i < 16; ++i) bytes.push_back(i < value.size() ? value[i] : 0);
    return *this;
  }
  ByteWriter& append(const std::vector<std::uint8_t>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  ByteWriter& pad_to(std::size_t size) {
    if (bytes.size() < size) bytes.resize(size, 0);
    return *this;
  }
  std::vector<std::uint8_t> bytes;
};

/// A small arm64 dylib: __TEXT (header), __DATA with one section of pointers, __LINKEDIT with one
/// part. Everything a test may want to break is a public member.
struct SmallImage {
  std::uint64_t base = 0x100000000;
  std::uint64_t data_address = 0x100004000;
  std::vector<std::uint64_t> data;              ///< the contents of __DATA,__got
  std::uint32_t linkedit_command = 0x80000034;  ///< LC_DYLD_CHAINED_FIXUPS
  std::vector<std::uint8_t> linkedit;           ///< the part that the command names
  std::vector<std::uint8_t> dyld_info;  ///< if not empty: a whole LC_DYLD_INFO_ONLY after cmd, size
  std::uint32_t cpu_type = 0x0100000c;
  static constexpr std::uint64_t kDataOffset = 0x4000, kLinkeditOffset = 0x8000;

  std::vector<std::uint8_t> build() const {
    ByteWriter commands;
    std::uint32_t count = 3;
    segment(commands, "__TEXT", base, 0x4000, 0, 0x4000, 0);
    segment(commands, "__DATA", data_address, 0x4000, kDataOffset, 0x4000, 1);
    commands.name16("__got").name16("__DATA").put(data_address);
    commands.put(std::uint64_t{data.size() * 8})
        .put(std::uint32_t{kDataOffset})
        .put(std::uint32_t{3});
    commands.put(std::uint64_t{0})
        .put(std::uint32_t{0})
        .put(std::uint64_t{0})
        .put(std::uint32_t{0});
    segment(commands, "__LINKEDIT", data_address + 0x4000, 0x4000, kLinkeditOffset, linkedit.size(),
            0);
    if (!dyld_info.empty()) {
      commands.put(std::uint32_t{0x80000022}).put(std::uint32_t(8 + dyld_info.size()));
      commands.append(dyld_info);
      ++count;
    } else {
      commands.put(linkedit_command).put(std::uint32_t{16}).put(std::uint32_t{kLinkeditOffset});
      commands.put(static_cast<std::uint32_t>(linkedit.size()));
      ++count;
    }
    ByteWriter out;
    out.put(std::uint32_t{0xfeedfacf}).put(cpu_type).put(std::uint32_t{0}).put(std::uint32_t{6});
    out.put(count).put(static_cast<std::uint32_t>(commands.bytes.size()));
    out.put(std::uint64_t{0}).append(commands.bytes).pad_to(kDataOffset);
    for (const std::uint64_t slot : data) out.put(slot);
    return out.pad_to(kLinkeditOffset).append(linkedit).bytes;
  }

 private:
  static void segment(ByteWriter& out, std::string_view name, std::uint64_t address,
                      std::uint64_t size, std::uint64_t offset, std::uint64_t file_size,
                      std::uint32_t sections) {
    out.put(std::uint32_t{0x19}).put(std::uint32_t{72 + sections * 80}).name16(name).put(address);
    out.put(size).put(offset).put(file_size).put(std::uint32_t{3}).put(std::uint32_t{3});
    out.put(sections).put(std::uint32_t{0});
  }
};

/// A chained fixups payload for SmallImage: starts for __DATA only, one page.
struct ChainedPayload {
  std::uint16_t format = 6;
  std::uint16_t page_size = 0x4000, page_start = 0, page_count = 1;
  std::uint64_t segment_offset = 0x4000;
  std::uint32_t imports_format = 1;
  std::vector<std::uint8_t> imports;  ///< raw entries
  std::uint32_t imports_count = 0;
  std::string names;  ///< with their NULs
  std::uint32_t segment_count = 3;

  std::vector<std::uint8_t> build() const {
    ByteWriter starts;
    starts.put(segment_count).put(std::uint32_t{0}).put(std::uint32_t{16}).put(std::uint32_t{0});
    starts.put(std::uint32_t{24}).put(page_size).put(format).put(segment_offset);
    starts.put(std::uint32_t{0}).put(page_count).put(page_start);
    const std::uint32_t starts_at = 32;
    const auto imports_at = static_cast<std::uint32_t>(starts_at + starts.bytes.size());
    const auto names_at = static_cast<std::uint32_t>(imports_at + imports.size());
    ByteWriter out;
    out.put(std::uint32_t{0}).put(starts_at).put(imports_at).put(names_at).put(imports_count);
    out.put(imports_format).put(std::uint32_t{0}).pad_to(starts_at).append(starts.bytes);
    out.append(imports);
    out.bytes.insert(out.bytes.end(), names.begin(), names.end());
    return out.bytes;
  }
};

}  // namespace metaldoctor::testing
