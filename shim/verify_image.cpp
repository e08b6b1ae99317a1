#include "shim/verify_image.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "scanners/macho/code_signature.h"
#include "scanners/macho/fixups.h"
#include "shim/emit.h"
#include "shim/sign.h"

namespace metaldoctor {
namespace {

using Problems = std::vector<std::string>;

constexpr std::uint32_t kDylib = 6;  ///< MH_DYLIB
constexpr std::uint32_t kMacos = 1;  ///< PLATFORM_MACOS
constexpr std::size_t kMostImports = 24;
constexpr std::size_t kLargestSlice = 36 * 1024;
constexpr OsVersion kMinimum{13, 0, 0};

/// Everything the injected library may call. What is not here has to be argued for first.
constexpr std::array<std::string_view, 17> kAllowed{
    "___error",
    "_class_getInstanceMethod",
    "_class_getName",
    "_class_replaceMethod",
    "_dladdr",
    "_getenv",
    "_getpid",
    "_memcpy",
    "_memset",
    "_method_getImplementation",
    "_method_getTypeEncoding",
    "_objc_getClass",
    "_object_getClass",
    "_open",
    "_sel_registerName",
    "_unsetenv",
    "_write",
};

/// What some imports would let a library do, for the message about them.
struct Concern {
  std::string_view prefix;
  std::string_view what;
};
constexpr std::array<Concern, 19> kConcerns{{
    {"_method_setImplementation", "changes a method for every class that inherits it"},
    {"_method_exchangeImplementations", "swaps methods for every class that inherits them"},
    {"_class_addMethod", "adds methods to classes"},
    {"_objc_setHook", "hooks the Objective-C runtime"},
    {"_mach_absolute_time", "reads a clock"},
    {"_mach_continuous_time", "reads a clock"},
    {"_clock_", "reads a clock"},
    {"_gettimeofday", "reads a clock"},
    {"_time", "reads a clock"},
    {"_socket", "uses the network"},
    {"_connect", "uses the network"},
    {"_getaddrinfo", "uses the network"},
    {"_send", "uses the network"},
    {"_dlopen", "loads more code"},
    {"_dlsym", "finds functions that are not in its list of imports"},
    {"_mach_vm_", "changes memory protection or other processes"},
    {"_mprotect", "changes memory protection"},
    {"_posix_spawn", "starts processes"},
    {"_NSLog", "prints into the output of the program"},
}};

Problems file_type(const Image& image) {
  if (image.file_type() == kDylib) return {};
  return {fmt::format("Mach-O file type {}, expected a dynamic library (6)", image.file_type())};
}

Problems install_name(const Image& image) {
  if (image.install_name() == kInstallName) return {};
  return {fmt::format("'{}', expected '{}'", image.install_name(), kInstallName)};
}

Problems minimum_os(const Image& image) {
  if (!image.build()) return {"no minimum OS is given"};
  if (image.build()->platform != kMacos) {
    return {fmt::format("built for platform {}, expected macOS (1)", image.build()->platform)};
  }
  if (image.build()->minimum <= kMinimum) return {};
  return {fmt::format("needs macOS {}, expected at most {}", to_string(image.build()->minimum),
                      to_string(kMinimum))};
}
std::string minimum_os_text(const Image& image) {
  return image.build() ? "macOS " + to_string(image.build()->minimum) : "";
}

Problems size(const Image& image) {
  const std::size_t bytes = image.slice().bytes.size();
  if (bytes <= kLargestSlice) return {};
  return {fmt::format("{} bytes, expected at most {}", bytes, kLargestSlice)};
}
std::string size_text(const Image& image) {
  return fmt::format("{} {} bytes", image.slice().arch, image.slice().bytes.size());
}

Problems libraries(const Image& image) {
  static constexpr std::array<std::string_view, 3> expected{
      "/usr/lib/libSystem.B.dylib", "/usr/lib/libobjc.A.dylib",
      "/System/Library/Frameworks/Metal.framework/Versions/A/Metal"};
  Problems problems;
  for (const Dylib& library : image.dylibs()) {
    if (std::ranges::find(expected, library.path) == expected.end()) {
      problems.push_back(fmt::format("loads {}", library.path));
    }
  }
  const auto metal = std::ranges::find(image.dylibs(), expected[2], &Dylib::path);
  if (metal == image.dylibs().end() || metal->kind != Dylib::Kind::normal) {
    problems.push_back("does not link Metal: the class to hook may not exist yet when it starts");
  }
  return problems;
}

std::string concern(std::string_view import) {
  const auto found = std::ranges::find_if(
      kConcerns, [&](const Concern& row) { return import.starts_with(row.prefix); });
  return found == kConcerns.end() ? std::string(import)
                                  : fmt::format("{} ({})", import, found->what);
}

Problems imports(const Image& image) {
  const auto fixups = Fixups::read(image);
  if (!fixups) return {fixups.error().what};
  Problems problems, unexpected;
  for (const Import& import : fixups->imports()) {
    if (std::ranges::find(kAllowed, import.name) == kAllowed.end()) {
      unexpected.push_back(concern(import.name));
    }
  }
  if (!unexpected.empty()) {
    problems.push_back(
        fmt::format("not on the list of what is allowed: {}", fmt::join(unexpected, ", ")));
  }
  if (fixups->imports().size() > kMostImports) {
    problems.push_back(
        fmt::format("{} imports, expected at most {}", fixups->imports().size(), kMostImports));
  }
  return problems;
}
std::string imports_text(const Image& image) {
  const auto fixups = Fixups::read(image);
  return fixups ? fmt::format("{} {}", image.slice().arch, fixups->imports().size()) : "";
}

/// Section types by which dyld runs code or replaces functions, whatever the section is called
/// (mach-o/loader.h).
struct HookType {
  std::uint32_t type;
  std::string_view what;
};
constexpr std::array<HookType, 4> kHookTypes{{
    {0x9, "S_MOD_INIT_FUNC_POINTERS"},
    {0xa, "S_MOD_TERM_FUNC_POINTERS"},
    {0xd, "S_INTERPOSING"},
    {0x15, "S_THREAD_LOCAL_INIT_FUNCTION_POINTERS"},
}};
constexpr std::uint32_t kInitOffsets = 0x16;  ///< S_INIT_FUNC_OFFSETS: the one initialiser

/// Ways in which code runs, or takes the place of other code, besides one initialiser.
Problems other_hooks(const Image& image) {
  Problems problems;
  for (const Section& section : image.sections()) {
    const auto* type = std::ranges::find(kHookTypes, section.type, &HookType::type);
    const bool by_type = type != kHookTypes.end();
    // The Objective-C runtime goes by name: lists of classes and categories run or replace code.
    const bool of_objc = section.name.starts_with("__objc_") && section.name != "__objc_imageinfo";
    const bool other_initialiser = section.type == kInitOffsets && section.name != "__init_offsets";
    if (by_type || of_objc || other_initialiser || section.name == "__interpose") {
      problems.push_back(fmt::format("has a section {}{}{}", section.name,
                                     by_type ? " of type " : "", by_type ? type->what : ""));
    }
  }
  if (image.has_init_routine()) problems.push_back("has an initialiser by LC_ROUTINES_64");
  const Section* initialisers = image.section("__TEXT", "__init_offsets");
  if (!initialisers || initialisers->size != 4) {
    problems.push_back("has not exactly one initialiser");
  }
  return problems;
}

/// dyld reads no other kind in an arm64e process, and libraries of today have it everywhere.
Problems fixups(const Image& image) {
  const auto read = Fixups::read(image);
  if (!read) return {read.error().what};
  if (read->style() != Fixups::Style::chained) return {"the fixups are not chained"};
  if (auto walked = read->walk([](std::uint64_t, const Pointer&) {}); !walked) {
    return {walked.error().what};
  }
  return {};
}

Problems signature(const Image& image) {
  const auto check = check_signature(image);
  if (!check) return {check.error().what};
  Problems problems;
  if (!check->wrong_pages.empty()) {
    problems.push_back(fmt::format("{} of {} pages do not match their hash, the first is page {}",
                                   check->wrong_pages.size(), check->pages,
                                   check->wrong_pages.front()));
  }
  if (!check->covers_file) problems.push_back("it does not cover everything before it");
  const auto read = read_code_signature(image);
  if (!read || !*read) return problems;
  const CodeSignature& code = **read;
  if (!code.is_adhoc() || code.has_cms) problems.push_back("it is not an ad-hoc signature");
  return problems;
}
std::string signature_text(const Image& image) {
  const auto check = check_signature(image);
  return check ? fmt::format("{} cdhash {}", image.slice().arch, check->cdhash) : "";
}

template <typename T, T text>
std::string constant(const Image&) {
  return std::string(text());
}
constexpr auto kLibrary = [] { return "a dynamic library"; };
constexpr auto kName = [] { return kInstallName; };
constexpr auto kLinks = [] { return "libSystem, libobjc, Metal"; };
constexpr auto kOneInitialiser = [] { return "one initialiser, nothing interposed"; };
constexpr auto kChained = [] { return "chained"; };

constexpr std::array<ImageCheck, 9> kChecks{{
    {"file-type", file_type, constant<decltype(kLibrary), kLibrary>},
    {"install-name", install_name, constant<decltype(kName), kName>},
    {"minimum-os", minimum_os, minimum_os_text},
    {"size", size, size_text},
    {"libraries", libraries, constant<decltype(kLinks), kLinks>},
    {"imports", imports, imports_text},
    {"hooks", other_hooks, constant<decltype(kOneInitialiser), kOneInitialiser>},
    {"fixups", fixups, constant<decltype(kChained), kChained>},
    {"signature", signature, signature_text},
}};

}  // namespace

std::span<const ImageCheck> image_check_list() {
  return kChecks;
}

std::optional<std::string> section_text(const Image& image) {
  const Section* section = image.section("__TEXT", "__mdprofile");
  if (!section) return std::nullopt;
  std::string text(section->bytes.begin(), section->bytes.end());
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

}  // namespace metaldoctor
