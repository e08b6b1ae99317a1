#include "shim/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "scanners/macho/macho_file.h"
#include "scanners/macho/sha256.h"
#include "shim/sign.h"
#include "tables/hazard_match.h"
#include "tables/host_answers.h"

extern "C" const std::uint8_t metaldoctor_template_begin[], metaldoctor_template_end[],
    metaldoctor_template_arm64e_begin[], metaldoctor_template_arm64e_end[];

namespace metaldoctor {
namespace {

constexpr std::string_view kTemplateText = "mdtemplate1;" METALDOCTOR_VERSION ";";

std::string above_text(const Answer& change, const Chip& chip,
                       const std::optional<HostAnswer>& host) {
  return fmt::format(
      "{}={}: {} {}", to_string(change.key), to_string(change.value), chip.name,
      host ? "answers " + to_string(host->answer.value) : "is not known to answer so");
}

OsKnowledge os_of(const Tables& tables, const Profile& profile) {
  OsKnowledge os;
  os.assumed = tables.newest_macos();
  os.exact = parse_os_version(profile.bound.os);
  return os;
}

/// A hazard of every process that a change brings and the profile does not accept. Which programs
/// will run is not known here, so theirs are for `recommend`.
std::optional<Diagnostic> unaccepted_hazard(const Tables& tables, const Profile& profile,
                                            const std::vector<Answer>& changes) {
  const OsKnowledge os = os_of(tables, profile);
  const Chip* chip = tables.chip(profile.bound.chip);
  const auto accepted = [&](const Hazard& hazard) {
    return std::ranges::find(profile.accepted_hazards, hazard.id) != profile.accepted_hazards.end();
  };
  for (const Answer& change : changes) {
    const auto host = chip ? host_answer(tables, *chip, os, change.key) : std::nullopt;
    const Value bound = host ? host->answer.value : Value{};
    if (is_known(bound) && is_raised(bound, change.value)) continue;  // above the host: see there
    for (const Hazard& hazard : tables.hazards()) {
      if (hazard.scope != Hazard::Scope::process || accepted(hazard)) continue;
      if (!is_about(tables, hazard, {change.key, change.value, {}, bound})) continue;
      if (!applies_on(hazard, os)) continue;
      return Diagnostic{
          Fault::refused, "hazard", "profile",
          fmt::format("{}={}: {}: {}", to_string(change.key), to_string(change.value), hazard.id,
                      hazard.effect),
          fmt::format("`recommend --accept-hazard {}` makes a profile that accepts it", hazard.id)};
    }
  }
  return std::nullopt;
}

/// Where the reserved section of a slice lies in the file.
Result<std::uint64_t> reserved_section(const Image& image) {
  const Section* section = image.section("__TEXT", "__mdprofile");
  const auto refuse = [&](std::string what) {
    return fail(Fault::input, "template-unusable", image.where(), std::move(what));
  };
  if (!section || section->bytes.size() != shim::kSectionSize) {
    return refuse(
        fmt::format("it has no section __TEXT,__mdprofile of {} bytes", shim::kSectionSize));
  }
  const std::string_view text =
      fixed_name(reinterpret_cast<const char*>(section->bytes.data()), section->bytes.size());
  if (text.starts_with(shim::kProfileMark)) return refuse("it holds a profile already");
  if (text != kTemplateText) return refuse("it is a template of another version");
  return section->file_offset;
}

std::string file_name(std::string_view name, std::string_view hash) {
  std::string kept;
  for (const char c : name.substr(0, 64)) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.') kept += c;
  }
  return fmt::format("libmetaldoctor-{}{}{}.dylib", kept, kept.empty() ? "" : "-",
                     hash.substr(0, 12));
}

constexpr std::uint32_t kFatMagic = 0xcafebabe;
constexpr std::uint32_t kCpuArm64 = 0x0100000c;
constexpr std::uint32_t kArm64eSubtype = 0x80000002;  ///< CPU_SUBTYPE_ARM64E, ptrauth ABI 0
constexpr std::size_t kSubtypeOffset = 8;             ///< mach_header_64.cpusubtype

struct FatSlice {
  std::uint32_t cpu_type, cpu_subtype, alignment;  ///< alignment: log2
  Bytes bytes;
};

/// A universal file (mach-o/fat.h); slices in the given order.
std::vector<std::uint8_t> write_fat(const std::vector<FatSlice>& slices) {
  std::vector<std::uint8_t> out;
  const auto u32 = [&](std::size_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      out.push_back(static_cast<std::uint8_t>(value >> shift));
    }
  };
  u32(kFatMagic);
  u32(slices.size());
  std::vector<std::size_t> offsets;
  std::size_t end = 8 + 20 * slices.size();
  for (const FatSlice& each : slices) {
    const std::size_t mask = (std::size_t{1} << each.alignment) - 1;
    offsets.push_back((end + mask) & ~mask);
    end = offsets.back() + each.bytes.size();
    u32(each.cpu_type);
    u32(each.cpu_subtype);
    u32(offsets.back());
    u32(each.bytes.size());
    u32(each.alignment);
  }
  for (std::size_t i = 0; i < slices.size(); ++i) {
    out.resize(offsets[i]);
    out.insert(out.end(), slices[i].bytes.begin(), slices[i].bytes.end());
  }
  return out;
}

/// `library` with the arm64e slice behind the others.
Result<std::vector<std::uint8_t>> with_arm64e(Bytes library, std::string_view text) {
  const Bytes linked{metaldoctor_template_arm64e_begin,
                     static_cast<std::size_t>(metaldoctor_template_arm64e_end -
                                              metaldoctor_template_arm64e_begin)};
  // lipo wrote a universal file of one architecture, or the linker a thin one.
  const auto file = MachOFile::read(linked, "arm64e template");
  if (!file) return tl::unexpected(file.error());
  const Bytes only = file->slices()[0].bytes;
  std::vector<std::uint8_t> thin(only.begin(), only.end());
  for (std::size_t i = 0; i < 4; ++i) {
    thin[kSubtypeOffset + i] = static_cast<std::uint8_t>(kArm64eSubtype >> (8 * i));
  }
  const auto slice = specialise(thin, "arm64e template", text);
  if (!slice) return tl::unexpected(slice.error());
  const auto others = MachOFile::read(library, "template");
  if (!others) return tl::unexpected(others.error());
  std::vector<FatSlice> slices;
  for (const Slice& each : others->slices()) {
    slices.push_back(
        {each.cpu_type, each.cpu_subtype, each.arch == "x86_64" ? 12u : 14u, each.bytes});
  }
  slices.push_back({kCpuArm64, kArm64eSubtype, 14, *slice});
  return write_fat(slices);
}

Result<std::vector<EmittedSlice>> describe(Bytes bytes) {
  const auto file = MachOFile::read(bytes, "emitted library");
  if (!file) return tl::unexpected(file.error());
  std::vector<EmittedSlice> out;
  for (const Slice& each : file->slices()) {
    const auto image = Image::read(each);
    if (!image) return tl::unexpected(image.error());
    const auto check = check_signature(*image);
    if (!check) return tl::unexpected(check.error());
    out.push_back({each.arch, each.bytes.size(), check->cdhash});
  }
  return out;
}

}  // namespace

Bytes embedded_template() {
  return {metaldoctor_template_begin,
          static_cast<std::size_t>(metaldoctor_template_end - metaldoctor_template_begin)};
}

Result<std::vector<std::uint8_t>> specialise(Bytes library, std::string_view name,
                                             std::string_view text) {
  const auto file = MachOFile::read(library, std::string(name));
  if (!file) return tl::unexpected(file.error());
  std::vector<std::uint8_t> out(library.begin(), library.end());
  for (const Slice& each : file->slices()) {
    const auto image = Image::read(each);
    if (!image) return tl::unexpected(image.error());
    const auto section = reserved_section(*image);
    if (!section) return tl::unexpected(section.error());
    const auto thin = std::span(out).subspan(each.offset, each.bytes.size());
    const auto place = thin.subspan(*section, shim::kSectionSize);
    if (text.size() > place.size()) {
      return fail(Fault::input, "profile-size", std::string(name), "the profile does not fit");
    }
    std::ranges::fill(place, std::uint8_t{0});
    std::ranges::copy(text, place.begin());
    if (auto done = sign_adhoc(thin, each.where, kAdhoc); !done) {
      return tl::unexpected(done.error());
    }
  }
  return out;
}

Result<std::vector<std::uint8_t>> make_library(std::string_view text, bool arm64e) {
  auto bytes = specialise(embedded_template(), "template", text);
  return bytes && arm64e ? with_arm64e(*bytes, text) : bytes;
}

Result<std::vector<std::string>> answers_above_bound(const Tables& tables, const Profile& profile,
                                                     const std::vector<Answer>& changes) {
  const OsKnowledge os = os_of(tables, profile);
  std::vector<const Chip*> chips;
  if (!profile.bound.chip.empty()) {
    chips = {tables.chip(profile.bound.chip)};
    if (!chips[0]) {
      return fail(Fault::refused, "bound-unknown", "profile: /bound/chip",
                  fmt::format("the tables have no chip '{}'", profile.bound.chip),
                  "`metaldoctor tables chips` lists them");
    }
  } else {
    for (const Chip& chip : tables.chips()) {
      if (chip.mac && chip.family) chips.push_back(&chip);
    }
  }
  std::vector<std::string> above;
  for (const Answer& change : changes) {
    if (change.value == Value{false}) continue;
    for (const Chip* chip : chips) {
      const auto host = host_answer(tables, *chip, os, change.key);
      if (!is_raised(host ? host->answer.value : Value{}, change.value)) continue;
      above.push_back(above_text(change, *chip, host));
      break;
    }
  }
  return above;
}

Result<EmitResult> emit(const Tables& tables, const Profile& profile, const EmitOptions& options) {
  Profile wanted = profile;
  if (options.observe) wanted.changes.clear();
  wanted.callers = options.callers.value_or(profile.callers);
  wanted.scope = options.scope.value_or(profile.scope);
  auto injected = injected_profile(tables, wanted, shim::Bound::host);
  if (!injected) return tl::unexpected(injected.error());
  auto above = answers_above_bound(tables, wanted, injected->changes);
  if (!above) return tl::unexpected(above.error());
  if (!above->empty() && !options.allow_above_host) {
    return fail(
        Fault::refused, "above-host", "profile",
        fmt::format("{} answer(s) above the host, the first: {}", above->size(), above->front()),
        "`recommend` makes a profile within the host; --allow-above-host marks the library");
  }
  if (auto hazard = unaccepted_hazard(tables, wanted, injected->changes)) {
    return tl::unexpected(*std::move(hazard));
  }
  injected->bound = !above->empty()             ? shim::Bound::above_host
                    : wanted.bound.chip.empty() ? shim::Bound::none
                                                : shim::Bound::host;
  EmitResult out;
  out.above_host = std::move(*above);
  out.profile = std::move(*injected);
  out.profile_text = encode(out.profile);
  auto bytes = make_library(out.profile_text, options.arm64e);
  if (!bytes) return tl::unexpected(bytes.error());
  out.bytes = std::move(*bytes);
  auto slices = describe(out.bytes);
  if (!slices) return tl::unexpected(slices.error());
  out.slices = std::move(*slices);
  out.sha256 = hex(sha256(out.bytes));
  const std::string_view fallback = options.observe ? "observe" : "";
  out.file_name = file_name(options.name.empty() ? fallback : options.name, out.sha256);
  return out;
}

std::string run_line(std::string_view path) {
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return fmt::format("DYLD_INSERT_LIBRARIES={}' PROGRAM", quoted);
}

}  // namespace metaldoctor
