#include "shim/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scanners/macho/macho_file.h"
#include "scanners/macho/sha256.h"
#include "shim/sign.h"
#include "shim/verify_image.h"

namespace metaldoctor {
namespace {

using State = VerifyCheck::State;

constexpr std::array<std::string_view, 2> kArchitectures{"arm64", "x86_64"};

/// Checks of the file as a whole; those of its slices are in verify_image.cpp.
class Verifier {
 public:
  Verifier(const Tables& tables, Bytes bytes, const MachOFile& file)
      : tables_(tables), bytes_(bytes), file_(file) {}
  Result<VerifyReport> run(const Profile* expected);

 private:
  void add(std::string id, std::vector<std::string> problems, std::string good);
  void container();
  void image_checks();
  void profile(const Profile* expected);
  void against_expected(const Profile& expected, const InjectedProfile& wanted,
                        std::vector<std::string>& problems);
  void template_bytes();

  const Tables& tables_;
  Bytes bytes_;
  const MachOFile& file_;
  std::vector<Image> images_;
  VerifyReport report_;
};

void Verifier::add(std::string id, std::vector<std::string> problems, std::string good) {
  const bool passed = problems.empty();
  report_.checks.push_back({std::move(id), passed ? State::passed : State::failed,
                            passed ? std::move(good) : fmt::format("{}", fmt::join(problems, "; ")),
                            Evidence::read});
}

/// A library without the architecture of its process ends that process: dyld stops.
void Verifier::container() {
  std::vector<std::string> problems, found;
  for (const Slice& slice : file_.slices()) found.push_back(slice.arch);
  for (const std::string_view arch : kArchitectures) {
    if (std::ranges::find(found, arch) == found.end()) {
      problems.push_back(fmt::format("no {}: dyld ends a process of that architecture", arch));
    }
  }
  for (const std::string& arch : found) {
    if (arch == "arm64e" || std::ranges::find(kArchitectures, arch) != kArchitectures.end())
      continue;
    problems.push_back(fmt::format("a slice for {}, which nobody executes here", arch));
  }
  add("architectures", problems, fmt::format("{}", fmt::join(found, ", ")));
  // Signatures cover the slices; what lies between them has to be nothing at all.
  std::vector<bool> covered(bytes_.size());
  for (const Slice& slice : file_.slices()) {
    std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(slice.offset), slice.bytes.size(),
                true);
  }
  const std::size_t header =
      file_.container() == Container::fat ? 8 + 20 * file_.slices().size() : 0;
  std::size_t stray = 0;
  for (std::size_t i = header; i < bytes_.size(); ++i) stray += !covered[i] && bytes_[i] != 0;
  add("padding",
      stray == 0 ? std::vector<std::string>{}
                 : std::vector{fmt::format("{} bytes outside of any architecture", stray)},
      "nothing lies outside the architectures");
}

/// The same check over all slices is one line, with the architecture before each problem.
void Verifier::image_checks() {
  for (const ImageCheck& check : image_check_list()) {
    ArchitectureProblems problems;
    std::string good;
    for (const Image& image : images_) {
      for (const std::string& problem : check.problems(image)) {
        problems.add(image.slice().arch, problem);
      }
      const std::string summary = check.summary(image);
      if (!summary.empty() && good.find(summary) == good.npos) {
        good += (good.empty() ? "" : "; ") + summary;
      }
    }
    add(std::string(check.id), problems.texts(), std::move(good));
  }
}

/// The same changes for more callers, for children too, or under a bound that does not hold.
void Verifier::against_expected(const Profile& expected, const InjectedProfile& wanted,
                                std::vector<std::string>& problems) {
  const InjectedProfile& found = *report_.profile;
  if (found.callers != wanted.callers && found.callers == Profile::Callers::all) {
    problems.push_back("every caller gets the changed answers, the profile says app");
  }
  if (found.scope != wanted.scope && found.scope == Profile::Scope::tree) {
    problems.push_back("children of the process get them too, the profile says process");
  }
  const auto above = answers_above_bound(tables_, expected, found.changes);
  if (!above) {
    problems.push_back("the expected profile: " + above.error().what);
  } else if (!above->empty() && found.bound != shim::Bound::above_host) {
    problems.push_back(fmt::format("it says bound: {}, but {}",
                                   shim::kBoundNames[static_cast<int>(found.bound)],
                                   above->front()));
  }
}

void Verifier::profile(const Profile* expected) {
  std::vector<std::string> texts;
  for (const Image& image : images_) {
    if (auto text = section_text(image)) texts.push_back(std::move(*text));
  }
  report_.is_ours = !texts.empty();
  if (texts.empty()) {
    report_.checks.push_back({"profile", State::not_applicable,
                              "it has no embedded profile: what it changes hangs on its code and "
                              "on the environment of the process",
                              Evidence::read});
    return;
  }
  report_.profile_text = texts[0];
  report_.is_template = texts[0].starts_with(shim::kTemplateMark);
  std::vector<std::string> problems;
  if (texts.size() != images_.size() ||
      std::ranges::adjacent_find(texts, std::not_equal_to()) != texts.end()) {
    problems.push_back("the architectures hold different profiles");
  }
  auto decoded = decode_profile(texts[0], "section __TEXT,__mdprofile");
  if (decoded) report_.profile = std::move(*decoded);
  if (!report_.profile && !report_.is_template) {
    problems.push_back("what it holds is no profile: it would change nothing");
  }
  if (expected && !report_.is_template) {
    const auto wanted = injected_profile(tables_, *expected, shim::Bound::host);
    if (!wanted) {
      problems.push_back("the expected profile: " + wanted.error().what);
    } else if (!report_.profile || wanted->changes != report_.profile->changes) {
      problems.push_back("the embedded changes are not those of the expected profile");
    } else {
      against_expected(*expected, *wanted, problems);
    }
  }
  std::string good = "a template: configured by the environment of each process";
  if (report_.profile) {
    good = fmt::format("{} changed answers, bound: {}{}", report_.profile->changes.size(),
                       shim::kBoundNames[static_cast<int>(report_.profile->bound)],
                       expected ? "" : " (as it says of itself: --profile holds it to a chip)");
  }
  add("profile", std::move(problems), std::move(good));
}

/// The strongest check: made again from the profile it holds, the library has the same bytes.
void Verifier::template_bytes() {
  if (!report_.is_ours) {
    report_.checks.push_back({"template", State::not_checked,
                              "it was not made by this program: what it does where nobody looked "
                              "cannot be told from its "
                              "bytes, so it cannot pass",
                              Evidence::read});
    return;
  }
  std::vector<std::uint8_t> again;
  if (report_.is_template) {
    again.assign(embedded_template().begin(), embedded_template().end());
  } else if (auto made = make_library(report_.profile_text,
                                      std::ranges::find(file_.slices(), "arm64e", &Slice::arch) !=
                                          file_.slices().end())) {
    again = std::move(*made);
  }
  std::vector<std::string> problems;
  const auto [mine, theirs] = std::ranges::mismatch(again, bytes_);
  if (mine != again.end() || theirs != bytes_.end()) {
    problems.push_back(fmt::format("byte {} differs from what this program makes of that profile",
                                   theirs - bytes_.begin()));
  }
  add("template", std::move(problems), "the same bytes as made again from its profile");
}

Result<VerifyReport> Verifier::run(const Profile* expected) {
  report_.sha256 = hex(sha256(bytes_));
  for (const Slice& slice : file_.slices()) {
    auto image = Image::read(slice);
    if (!image) return tl::unexpected(image.error());
    const auto signature = check_signature(*image);
    report_.slices.push_back(
        {slice.arch, slice.bytes.size(), signature ? signature->cdhash : std::string()});
    images_.push_back(std::move(*image));
  }
  container();
  image_checks();
  profile(expected);
  template_bytes();
  set_cannot_prove(report_, false);
  return std::move(report_);
}

}  // namespace

std::string_view to_string(VerifyCheck::State state) {
  switch (state) {
    case State::passed:
      return "passed";
    case State::failed:
      return "failed";
    case State::not_applicable:
      return "not applicable";
    case State::not_checked:
      return "not checked";
  }
  return "failed";
}

void ArchitectureProblems::add(const std::string& arch, const std::string& problem) {
  auto row = std::ranges::find(rows_, problem, [](const auto& each) { return each.first; });
  if (row == rows_.end()) row = rows_.insert(row, {problem, {}});
  if (std::ranges::find(row->second, arch) == row->second.end()) row->second.push_back(arch);
}

std::vector<std::string> ArchitectureProblems::texts() const {
  std::vector<std::string> out;
  for (const auto& [problem, archs] : rows_) {
    out.push_back(fmt::format("{}: {}", fmt::join(archs, ", "), problem));
  }
  return out;
}

VerifyReport::Verdict VerifyReport::verdict() const {
  const auto any = [&](State state) {
    return std::ranges::find(checks, state, &VerifyCheck::state) != checks.end();
  };
  if (any(State::failed)) return Verdict::failed;
  return any(State::not_checked) ? Verdict::incomplete : Verdict::passed;
}

void set_cannot_prove(VerifyReport& report, bool executed) {
  report.cannot_prove = {
      "That dyld will insert it into a given program: see `metaldoctor preflight`.",
      "How Metal and its driver behave once an answer is another."};
  if (!executed) {
    report.cannot_prove.emplace_back(
        "What a library does that is not visible in its load commands and imports.");
    return;
  }
  report.cannot_prove.emplace_back(
      "That classes, encodings and the order of events are those of the simulation: they are taken "
      "from what was published of macOS and iOS builds.");
  report.cannot_prove.emplace_back(
      "What it does in situations other than the executed ones, or "
      "with several threads at once.");
  if (std::ranges::find(report.slices, "arm64e", &EmittedSlice::arch) != report.slices.end()) {
    report.cannot_prove.emplace_back("What its arm64e slice does: that was not executed.");
  }
}

const VerifyCheck* VerifyReport::check(std::string_view id) const {
  const auto found = std::ranges::find(checks, id, &VerifyCheck::id);
  return found == checks.end() ? nullptr : &*found;
}

Result<VerifyReport> verify_static(const Tables& tables, Bytes file, std::string_view name,
                                   const Profile* expected) {
  const auto macho = MachOFile::read(file, std::string(name));
  if (!macho) return tl::unexpected(macho.error());
  if (macho->container() == Container::archive || macho->slices().empty()) {
    return fail(Fault::input, "verify-not-a-library", std::string(name),
                "expected a Mach-O dynamic library");
  }
  return Verifier(tables, file, *macho).run(expected);
}

}  // namespace metaldoctor
