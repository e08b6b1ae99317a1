#include "shim/inject/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scanners/macho/code_signature.h"
#include "shim/inject/entitlements.h"

namespace metaldoctor {
namespace {

// mach-o/loader.h
constexpr std::uint32_t kExecuteFile = 2, kDyldEnvironmentCommand = 0x27, kHeaderSize = 32;
constexpr std::uint32_t kPlatformMacos = 1, kPlatformMacCatalyst = 6;
constexpr OsVersion kTakesForeignArm64e{14, 4, 0};

constexpr std::string_view kAllowDyld = "com.apple.security.cs.allow-dyld-environment-variables";
constexpr std::string_view kDisableLv = "com.apple.security.cs.disable-library-validation";
constexpr std::string_view kGetTaskAllow = "com.apple.security.get-task-allow";
constexpr std::string_view kSandbox = "com.apple.security.app-sandbox";
constexpr std::string_view kPrivate = "com.apple.private.";

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

/// LC_DYLD_ENVIRONMENT commands that set DYLD_DLSYM_RESULT. The commands' sizes have been checked.
bool sets_dlsym_result(const Image& image) {
  const Bytes bytes = image.slice().bytes;
  const std::uint32_t count = read_at<std::uint32_t>(bytes, 16).value_or(0);
  std::uint64_t at = kHeaderSize;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto command = read_at<std::uint32_t>(bytes, at);
    const auto size = read_at<std::uint32_t>(bytes, at + 4);
    if (!command || !size) return false;
    const auto text_at = read_at<std::uint32_t>(bytes, at + 8);
    if (*command == kDyldEnvironmentCommand && text_at) {
      const auto body = slice(bytes, at, *size);
      const auto text = body ? cstring_at(*body, *text_at) : std::nullopt;
      if (text && text->starts_with("DYLD_DLSYM_RESULT=")) return true;
    }
    at += *size;
  }
  return false;
}

/// From macOS 14.4 dyld takes arm64e slices of others, and prefers them in arm64 processes.
bool has_slice_for(const PreflightWorld& world, std::string_view arch) {
  if (contains(world.library_archs, arch)) return true;
  return arch == "arm64" && contains(world.library_archs, "arm64e") && world.os &&
         !(*world.os < kTakesForeignArm64e);
}

std::string_view library_fact(const Image& image, const PreflightWorld& world) {
  if (!world.library_present) return "missing";
  if (!has_slice_for(world, image.slice().arch)) return "no-slice";
  const auto& build = image.build();
  const bool fits = !build || build->platform == kPlatformMacos ||
                    build->platform == kPlatformMacCatalyst || build->platform == 0;
  return fits ? "fits" : "no-platform";
}

std::string_view yes_no(bool value) {
  return value ? "yes" : "no";
}

std::string_view architecture_fact(const std::string& arch) {
  const bool runs = arch == "arm64" || arch == "arm64e" || arch == "x86_64";
  return runs ? std::string_view(arch) : "other";
}

std::string_view signature_fact(const std::optional<CodeSignature>& signature) {
  if (!signature) return "none";
  if (signature->is_adhoc()) return "ad-hoc";
  return signature->has_cms ? "identity" : "odd";
}

std::string_view sip_fact(PreflightWorld::Sip sip) {
  constexpr std::array<std::string_view, 3> words{"unknown", "on", "off"};
  return words[static_cast<std::size_t>(sip)];
}

std::string_view os_fact(const std::optional<OsVersion>& os) {
  return !os ? "unknown" : yes_no(!(*os < kTakesForeignArm64e));
}

std::string_view entitlements_fact(Entitlements::State state) {
  constexpr std::array<std::string_view, 4> words{"none", "read", "differ", "damaged"};
  return words[static_cast<std::size_t>(state)];
}

PreflightFacts facts_of(const Tables& tables, const Image& image, const PreflightWorld& world,
                        const std::optional<CodeSignature>& signature,
                        const Entitlements& entitlements) {
  const CodeSignature flags = signature.value_or(CodeSignature{});
  const auto has = [&](std::string_view key) { return yes_no(entitlements.has(std::string(key))); };
  PreflightFacts facts;
  const auto add = [&](std::string_view name, std::string_view value) {
    facts.emplace_back(name, value);
  };
  add("allow_dyld", has(kAllowDyld));
  add("architecture", architecture_fact(image.slice().arch));
  add("disable_library_validation", has(kDisableLv));
  add("dlsym_result", yes_no(sets_dlsym_result(image)));
  add("encrypted", yes_no(image.encrypted()));
  add("entitlements", entitlements_fact(entitlements.state));
  add("get_task_allow", has(kGetTaskAllow));
  add("hardened", yes_no(flags.is_hardened()));
  add("library", library_fact(image, world));
  add("library_arm64e", yes_no(contains(world.library_archs, "arm64e")));
  add("os_takes_arm64e", os_fact(world.os));
  add("private_entitlements", yes_no(entitlements.has_any_below(std::string(kPrivate))));
  add("requires_library_validation", yes_no(flags.requires_library_validation()));
  add("restrict_section", yes_no(image.section("__RESTRICT", "__restrict") != nullptr));
  add("restricted", yes_no(flags.is_restricted()));
  add("sandbox", has(kSandbox));
  add("set_id", yes_no(world.set_id));
  add("signature", signature_fact(signature));
  add("sip", sip_fact(world.sip));
  add("system_program", yes_no(flags.platform != 0 || is_system_path(tables, world.path)));
  return facts;
}

bool fits_row(const PreflightRow& row, const PreflightFacts& facts) {
  return std::ranges::all_of(row.when, [&](const auto& condition) {
    const auto found =
        std::ranges::find(facts, condition.first, &PreflightFacts::value_type::first);
    return found != facts.end() && contains(condition.second, found->second);
  });
}

/// An Apple silicon Mac starts arm64 code where there is any; arm64e only of macOS itself.
std::size_t chosen_slice(const std::vector<Preflight>& slices) {
  const auto is_system = [](const Preflight& slice) { return slice.row->id.starts_with("system"); };
  constexpr std::array<std::string_view, 3> order{"arm64", "arm64e", "x86_64"};
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].arch == "arm64e" && is_system(slices[i])) return i;
  }
  for (const std::string_view arch : order) {
    const auto found = std::ranges::find(slices, arch, &Preflight::arch);
    if (found != slices.end()) return static_cast<std::size_t>(found - slices.begin());
  }
  return 0;
}

}  // namespace

const std::vector<FactValues>& preflight_vocabulary() {
  static const std::vector<std::string_view> truth{"yes", "no"};
  static const std::vector<FactValues> all{
      {"allow_dyld", truth},
      {"architecture", {"arm64", "arm64e", "x86_64", "other"}},
      {"disable_library_validation", truth},
      {"dlsym_result", truth},
      {"encrypted", truth},
      {"entitlements", {"none", "read", "differ", "damaged"}},
      {"get_task_allow", truth},
      {"hardened", truth},
      {"library", {"fits", "missing", "no-slice", "no-platform"}},
      {"library_arm64e", truth},
      {"os_takes_arm64e", {"yes", "no", "unknown"}},
      {"private_entitlements", truth},
      {"requires_library_validation", truth},
      {"restrict_section", truth},
      {"restricted", truth},
      {"sandbox", truth},
      {"set_id", truth},
      {"signature", {"none", "ad-hoc", "identity", "odd"}},
      {"sip", {"on", "off", "unknown"}},
      {"system_program", truth},
  };
  return all;
}

bool is_system_path(const Tables& tables, std::string_view path) {
  for (const SystemPlace& place : tables.system_places()) {
    if (path.starts_with(place.prefix)) return place.system;
  }
  return false;
}

void decide(const Tables& tables, Preflight& preflight) {
  for (const PreflightRow& row : tables.preflight_rows()) {
    if (!fits_row(row, preflight.facts)) continue;
    if (row.verdict == "note") {
      preflight.remarks.push_back(&row);
    } else if (!preflight.row) {
      preflight.row = &row;
    }
  }
}

Result<Preflight> preflight(const Tables& tables, const Image& image, const PreflightWorld& world) {
  if (image.file_type() != kExecuteFile) {
    return fail(Fault::usage, "not-a-program", image.where(),
                "is a library or an object file: the program that loads it decides",
                "give that program");
  }
  const auto signature = read_code_signature(image);
  if (!signature) return tl::unexpected(signature.error());
  Entitlements entitlements;
  if (*signature) entitlements = read_entitlements(**signature, image.where());
  Preflight out;
  out.arch = image.slice().arch;
  out.facts = facts_of(tables, image, world, *signature, entitlements);
  out.entitlements_problem = entitlements.reason;
  if (*signature) {
    out.identifier = (*signature)->identifier;
    out.team_id = (*signature)->team_id;
  }
  decide(tables, out);
  if (!out.row) return fail(Fault::bug, "bug", "preflight", "no row of the table decides");
  return out;
}

Result<ProgramPreflight> preflight_program(const Tables& tables, Bytes bytes,
                                           const std::string& name, const std::string& arch,
                                           const PreflightWorld& world) {
  const auto file = MachOFile::read(bytes, name);
  if (!file) return tl::unexpected(file.error());
  if (file->container() == Container::archive) {
    return fail(Fault::usage, "not-a-program", name, "is a static archive, expected a program");
  }
  ProgramPreflight out;
  for (const Slice& slice : file->slices()) {
    if (!arch.empty() && slice.arch != arch) continue;
    const auto image = Image::read(slice);
    if (!image) return tl::unexpected(image.error());
    auto one = preflight(tables, *image, world);
    if (!one) return tl::unexpected(one.error());
    out.slices.push_back(std::move(*one));
  }
  if (out.slices.empty()) {
    return fail(Fault::input, "no-slice", name,
                arch.empty() ? std::string("holds no 64-bit Mach-O image")
                             : fmt::format("holds no {} slice", arch));
  }
  out.chosen = chosen_slice(out.slices);
  return out;
}

}  // namespace metaldoctor
