#pragma once
// Small Mach-O programs with every part that decides injection. Everything a test may want to vary
// is a public member.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/macho/macho_builder.h"

namespace metaldoctor::testing {

/// A code signature, byte for byte as xnu's cs_blobs.h lays it out; hashes are not made.
struct SignatureBuilder {
  std::uint32_t flags = 0x2;
  std::uint8_t platform = 0;
  std::string identifier = "program";
  std::string team;
  std::optional<std::string> xml;
  std::optional<std::vector<std::uint8_t>> der;
  bool cms = false;

  std::vector<std::uint8_t> build() const {
    std::vector<std::pair<std::uint32_t, std::vector<std::uint8_t>>> parts{{0, directory()}};
    const auto text = [](const std::string& s) {
      return std::vector<std::uint8_t>(s.begin(), s.end());
    };
    if (xml) parts.emplace_back(5, blob(0xfade7171, text(*xml)));
    if (der) parts.emplace_back(7, blob(0xfade7172, *der));
    if (cms) parts.emplace_back(0x10000, blob(0xfade0b01, text("cms")));
    ByteWriter index, bodies;
    const std::size_t header = 12 + parts.size() * 8;
    for (const auto& [type, bytes] : parts) {
      be(index, type);
      be(index, static_cast<std::uint32_t>(header + bodies.bytes.size()));
      bodies.append(bytes);
    }
    ByteWriter out;
    be(out, 0xfade0cc0);
    be(out, static_cast<std::uint32_t>(header + bodies.bytes.size()));
    be(out, static_cast<std::uint32_t>(parts.size()));
    return out.append(index.bytes).append(bodies.bytes).bytes;
  }

  static void be(ByteWriter& out, std::uint32_t value) { out.put(__builtin_bswap32(value)); }

 private:
  static std::vector<std::uint8_t> blob(std::uint32_t magic,
                                        const std::vector<std::uint8_t>& body) {
    ByteWriter out;
    be(out, magic);
    be(out, static_cast<std::uint32_t>(8 + body.size()));
    return out.append(body).bytes;
  }

  std::vector<std::uint8_t> directory() const {
    ByteWriter out;
    const auto team_at = static_cast<std::uint32_t>(team.empty() ? 0 : 52 + identifier.size() + 1);
    for (const std::uint32_t value : {0xfade0c02u, 0u, 0x20400u, flags, 0u, 52u}) be(out, value);
    out.pad_to(36).put(std::uint8_t{32}).put(std::uint8_t{2}).put(platform);
    out.pad_to(48);
    be(out, team_at);
    out.text(identifier).text(team);
    const auto size = __builtin_bswap32(static_cast<std::uint32_t>(out.bytes.size()));
    std::memcpy(out.bytes.data() + 4, &size, 4);
    return out.bytes;
  }
};

/// DER entitlements with boolean values.
inline std::vector<std::uint8_t> der_entitlements(const std::map<std::string, bool>& values) {
  const auto element = [](std::uint8_t tag, const std::vector<std::uint8_t>& body) {
    std::vector<std::uint8_t> out{tag};
    if (body.size() >= 0x100)
      out.insert(out.end(), {0x82, static_cast<std::uint8_t>(body.size() >> 8)});
    else if (body.size() >= 0x80)
      out.push_back(0x81);
    out.push_back(static_cast<std::uint8_t>(body.size()));
    out.insert(out.end(), body.begin(), body.end());
    return out;
  };
  std::vector<std::uint8_t> entries;
  for (const auto& [key, value] : values) {
    auto pair = element(0x0c, {key.begin(), key.end()});
    const auto truth = element(0x01, {static_cast<std::uint8_t>(value ? 0xff : 0)});
    pair.insert(pair.end(), truth.begin(), truth.end());
    const auto entry = element(0x30, pair);
    entries.insert(entries.end(), entry.begin(), entry.end());
  }
  std::vector<std::uint8_t> whole = element(0x02, {1});
  const auto dictionary = element(0xb0, entries);
  whole.insert(whole.end(), dictionary.begin(), dictionary.end());
  return element(0x70, whole);
}

inline std::string xml_entitlements(const std::map<std::string, bool>& values) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>";
  for (const auto& [key, value] : values) {
    out += "<key>" + key + "</key>" + (value ? "<true/>" : "<false/>");
  }
  return out + "</dict></plist>\n";
}

struct ProgramBuilder {
  static constexpr std::uint32_t kArm64 = 0x0100000c, kX86_64 = 0x01000007;
  std::uint32_t cpu_type = kArm64, cpu_subtype = 0;
  std::uint32_t file_type = 2;  ///< MH_EXECUTE
  std::uint32_t platform = 1;   ///< macOS
  bool restrict_section = false, encrypted = false;
  std::string dyld_environment;
  std::optional<SignatureBuilder> signature = SignatureBuilder{};

  std::vector<std::uint8_t> build() const {
    constexpr std::uint32_t kLinkedit = 0x4000;
    const auto blob = signature ? signature->build() : std::vector<std::uint8_t>{};
    ByteWriter commands;
    std::uint32_t count = 3;
    segment(commands, "__TEXT", 0x100000000, 0, kLinkedit, restrict_section);
    segment(commands, "__LINKEDIT", 0x100004000, kLinkedit, blob.size(), false);
    for (const std::uint32_t value : {0x32u, 24u, platform, 0xd0000u, 0xd0000u, 0u}) {
      commands.put(value);
    }
    const auto add = [&](std::initializer_list<std::uint32_t> words) {
      for (const std::uint32_t word : words) commands.put(word);
      ++count;
    };
    if (encrypted) add({0x2c, 24, 0, 0x1000, 1, 0});
    if (!dyld_environment.empty()) {
      const auto size = static_cast<std::uint32_t>((12 + dyld_environment.size() + 8) / 8 * 8);
      const std::size_t end = commands.bytes.size() + size;
      add({0x27, size, 12});
      commands.text(dyld_environment).pad_to(end);
    }
    if (signature) add({0x1d, 16, kLinkedit, static_cast<std::uint32_t>(blob.size())});
    ByteWriter out;
    out.put(std::uint32_t{0xfeedfacf}).put(cpu_type).put(cpu_subtype).put(file_type).put(count);
    out.put(static_cast<std::uint32_t>(commands.bytes.size())).put(std::uint64_t{0});
    return out.append(commands.bytes).pad_to(kLinkedit).append(blob).bytes;
  }

 private:
  static void segment(ByteWriter& out, std::string_view name, std::uint64_t address,
                      std::uint64_t offset, std::uint64_t size, bool with_restrict) {
    const std::uint32_t sections = with_restrict ? 1 : 0;
    out.put(std::uint32_t{0x19}).put(std::uint32_t{72 + sections * 80}).name16(name).put(address);
    out.put(std::uint64_t{0x4000}).put(offset).put(size);
    out.put(std::uint32_t{5}).put(std::uint32_t{5}).put(sections).put(std::uint32_t{0});
    if (!with_restrict) return;
    out.name16("__restrict").name16("__RESTRICT").put(address).put(std::uint64_t{0});
    for (int i = 0; i < 8; ++i) out.put(std::uint32_t{0});
  }
};

/// A universal file of whole slices.
inline std::vector<std::uint8_t> universal(const std::vector<ProgramBuilder>& programs) {
  ByteWriter out;
  SignatureBuilder::be(out, 0xcafebabe);
  SignatureBuilder::be(out, static_cast<std::uint32_t>(programs.size()));
  std::vector<std::vector<std::uint8_t>> bodies;
  std::size_t offset = 0x4000;
  for (const ProgramBuilder& each : programs) {
    bodies.push_back(each.build());
    for (const std::size_t value : {std::size_t{each.cpu_type}, std::size_t{each.cpu_subtype},
                                    offset, bodies.back().size(), std::size_t{14}}) {
      SignatureBuilder::be(out, static_cast<std::uint32_t>(value));
    }
    offset += (bodies.back().size() + 0x3fff) / 0x4000 * 0x4000;
  }
  for (const auto& body : bodies) {
    out.pad_to((out.bytes.size() + 0x3fff) / 0x4000 * 0x4000).append(body);
  }
  return out.bytes;
}

}  // namespace metaldoctor::testing
