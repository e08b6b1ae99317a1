#include "tools/metaldoctor/auto_profile.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "scanners/macho/image.h"
#include "shim/recommend.h"
#include "tools/metaldoctor/binary_input.h"
#include "tools/metaldoctor/live_probe.h"

namespace metaldoctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLibraries = 64;
/// Where programs keep the libraries that they link, beside themselves.
constexpr const char* kPlaces[] = {".", "../lib", "../Frameworks", "../libexec", "lib"};

/// The names of the libraries that a program links and that are not of macOS.
std::vector<std::string> linked_names(const std::string& path) {
  std::vector<std::string> names;
  const auto mapped = MappedFile::open(path);
  if (!mapped) return names;
  const auto file = MachOFile::read(mapped->bytes(), path);
  if (!file) return names;
  for (const Slice& slice : file->slices()) {
    const auto image = Image::read(slice);
    if (!image) continue;
    for (const Dylib& dylib : image->dylibs()) {
      const bool of_system =
          dylib.path.starts_with("/usr/lib/") || dylib.path.starts_with("/System/");
      if (!of_system) names.emplace_back(dylib.path);
    }
  }
  return names;
}

std::string beside(const std::string& program, const std::string& linked) {
  std::error_code error;
  if (linked.starts_with('/') && fs::is_regular_file(linked, error)) return linked;
  for (const char* place : kPlaces) {
    const fs::path path = fs::path(program).parent_path() / place / fs::path(linked).filename();
    if (fs::is_regular_file(path, error)) return fs::weakly_canonical(path, error).string();
  }
  return {};
}

/// The program and, step by step, the libraries that it brings along.
std::vector<std::string> images_of(const std::string& program) {
  std::vector<std::string> found{program};
  std::set<std::string> seen{program};
  for (std::size_t i = 0; i < found.size() && found.size() < kMostLibraries; ++i) {
    for (const std::string& name : linked_names(found[i])) {
      const std::string path = beside(program, name);
      if (!path.empty() && seen.insert(path).second) found.push_back(path);
    }
  }
  return found;
}

Result<void> add_rules(const Tables& tables, const std::vector<std::string>& apps,
                       std::vector<Path>& paths) {
  for (const std::string& spec : apps) {
    auto found = find_app(tables, spec);
    if (!found) return tl::unexpected(found.error());
    std::ranges::move(paths_of(*found->first, *found->second), std::back_inserter(paths));
  }
  return {};
}

}  // namespace

void AutoProfile::add_options(CLI::App& app) {
  device.add_options(app);
  app.add_option("--app", apps, "with --auto: also the rules of this program")
      ->type_name("ID[@RANGE]")
      ->allow_extra_args(false);
  app.add_option("--with", files, "with --auto: also what this binary asks")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

Result<Profile> AutoProfile::make(Context& context, const Tables& tables,
                                  const std::string& program) const {
  DeviceInput input = device;
  if (!input.given()) input.probe = own_probe();
  if (!input.given()) {
    return fail(Fault::usage, "no-device", "run --auto",
                "there is no Metal device here to ask, and no answers were given",
                "--capture FILE, --log FILE, or --profile FILE instead of --auto");
  }
  auto options = input.diagnose_options(tables);
  if (!options) return tl::unexpected(options.error());
  auto guest = input.read(tables, context);
  if (!guest) return tl::unexpected(guest.error());
  std::vector<Path> paths;
  if (auto done = add_rules(tables, apps, paths); !done) return tl::unexpected(done.error());
  std::vector<std::string> images = images_of(program);
  images.insert(images.end(), files.begin(), files.end());
  for (const std::string& file : images) {
    auto audited = audit_file(tables, file, "");
    if (!audited) return tl::unexpected(audited.error());
    for (const AuditedImage& image : *audited) {
      std::ranges::move(paths_of(image.findings, image.programs), std::back_inserter(paths));
    }
  }
  RecommendOptions wanted;
  wanted.diagnose = *options;
  auto result = recommend(tables, *guest, paths, wanted);
  if (!result) return tl::unexpected(result.error());
  if (!result->refusals.empty()) return tl::unexpected(result->refusals.front());
  context.note(fmt::format("metaldoctor run: {} file(s) audited, {} path(s): {}", images.size(),
                           paths.size(), result->summary));
  return std::move(result->profile);
}

}  // namespace metaldoctor
