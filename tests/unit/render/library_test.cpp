// What `emit` and `verify` print: hashes depend on the compiler of the library, so the texts are
// tested here and not among the golden outputs.
#include "tools/render/library.h"

#include <gmock/gmock.h>

#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

using testing::HasSubstr;
using testing::Not;

const Tables& tables() {
  static const Tables tables = *Tables::embedded();
  return tables;
}

void expect_valid(const Json& document, std::string_view kind) {
  const auto read = read_document(json_text(document), kind, "document");
  ASSERT_TRUE(read) << read.error().where << ": " << read.error().what;
}

Profile profile(std::int64_t family) {
  Profile out;
  out.bound.chip = "M1 Ultra";
  out.changes.push_back({{{"supportsFamily:", {family}}, true}, "", {}, {}});
  return out;
}

VerifyReport report() {
  VerifyReport out;
  out.sha256 = std::string(64, 'a');
  out.slices = {{"arm64", 33936, std::string(40, 'b')}};
  out.is_ours = true;
  InjectedProfile injected;
  injected.changes = {{{"supportsFamily:", {1007}}, true}};
  out.profile = injected;
  out.checks = {{"signature", VerifyCheck::State::passed, "whole", Evidence::read},
                {"answers", VerifyCheck::State::not_checked, "no simulator", Evidence::unknown}};
  set_cannot_prove(out, false);
  return out;
}

TEST(Emitted, TextAndDocumentSayWhatWasMade) {
  const auto emitted = emit(tables(), profile(1007), {});
  const std::string text = emitted_text(tables(), *emitted, "/opt/x.dylib", {});
  EXPECT_THAT(text, HasSubstr("library   /opt/x.dylib\nsha256    " + emitted->sha256 + "\n"));
  EXPECT_THAT(text, HasSubstr("\nanswers it changes (1)\n  supportsFamily:1007 (Apple7) = yes\n"
                              "  callers all, scope process, bound host\n"));
  EXPECT_THAT(text, HasSubstr("\nrun with  DYLD_INSERT_LIBRARIES='/opt/x.dylib' PROGRAM\n"));
  expect_valid(emitted_json(*emitted, "/opt/x.dylib"), "emitted");
}

TEST(Emitted, AboveTheHostIsMarkedInEveryReport) {
  EmitOptions options;
  options.allow_above_host = options.arm64e = true;
  const auto emitted = emit(tables(), profile(1009), options);
  const std::string text = emitted_text(tables(), *emitted, "/x", {});
  EXPECT_THAT(text, HasSubstr("bound above-host"));
  EXPECT_THAT(text, HasSubstr("above the host: supportsFamily:1009=yes: M1 Ultra answers no"));
  EXPECT_THAT(text, HasSubstr("unproven: The arm64e slice"));
  const Json json = emitted_json(*emitted, "/x");
  expect_valid(json, "emitted");
  EXPECT_EQ(json["profile"]["bound"], "above-host");
  const auto verified = verify_static(tables(), emitted->bytes, "x");
  EXPECT_THAT(verification_text(tables(), *verified, "x", {}), HasSubstr("bound above-host"));
}

TEST(Verification, TheVerdictIsHonest) {
  VerifyReport all = report();
  std::string text = verification_text(tables(), all, "x.dylib", {});
  EXPECT_THAT(text, HasSubstr("incomplete: 1 passed, 1 not checked\n"));
  EXPECT_THAT(text, HasSubstr("  ok          signature        whole\n"
                              "  not checked answers: no simulator\n"));
  EXPECT_THAT(text, HasSubstr("cannot be proved here:\n  - That dyld"));
  expect_valid(verification_json(all, "x.dylib"), "verification");
  all.checks[1] = {"answers", VerifyCheck::State::failed, "wrong", Evidence::executed};
  text = verification_text(tables(), all, "x.dylib", {1, false});
  EXPECT_THAT(text, HasSubstr("FAILED: 1 failed, 1 passed, 0 not checked\n"));
  EXPECT_THAT(text, HasSubstr("  FAILED      answers          wrong [executed]\n"));
  all.checks.pop_back();
  all.flips = {{Profile::Callers::all, {"familySupportsSIMDReduction"}, {}},
               {Profile::Callers::app, {}, {}}};
  text = verification_text(tables(), all, "x.dylib", {});
  EXPECT_THAT(text, HasSubstr("passed: 1 checks\n"));
  EXPECT_THAT(text, HasSubstr("Metal's own answers, callers all (1)\n"
                              "  no -> yes  familySupportsSIMDReduction\n"));
  EXPECT_THAT(text, HasSubstr("callers app (0)\n"));
  expect_valid(verification_json(all, "x.dylib"), "verification");
}

TEST(Verification, NamesFromFilesCannotDriveATerminal) {
  VerifyReport odd = report();
  odd.checks[0].detail = "prints '\x1b[31m'";
  const std::string text = verification_text(tables(), odd, "a\x1b[2Jb", {});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace metaldoctor
