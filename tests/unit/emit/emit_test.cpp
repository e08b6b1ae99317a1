#include "shim/emit.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "scanners/macho/code_signature.h"
#include "scanners/macho/macho_file.h"
#include "scanners/macho/sha256.h"
#include "shim/sign.h"
#include "shim/verify.h"

namespace metaldoctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

Profile profile(std::vector<Answer> changes, std::string chip = "M1 Ultra") {
  Profile out;
  out.bound.chip = std::move(chip);
  for (Answer& change : changes) out.changes.push_back({std::move(change), "", {}, {}});
  return out;
}
Answer family(std::int64_t value, bool answer = true) {
  return {{"supportsFamily:", {value}}, answer};
}
const std::vector<Answer> kApple7{family(1006), family(1007)};

Bytes template_slice(std::string_view arch) {
  static const MachOFile file = *MachOFile::read(embedded_template(), "template");
  for (const Slice& slice : file.slices()) {
    if (slice.arch == arch) return slice.bytes;
  }
  return {};
}

TEST(Emit, PutsTheProfileIntoEverySlice) {
  const auto emitted = emit(tables(), profile(kApple7), {});
  ASSERT_TRUE(emitted) << emitted.error().what;
  EXPECT_EQ(emitted->profile_text, "mdp1;all;process;host;1:1006=1;1:1007=1;.");
  const auto report = verify_static(tables(), emitted->bytes, "out.dylib");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_ours);
  EXPECT_FALSE(report->is_template);
  EXPECT_EQ(report->profile, emitted->profile);
  for (const VerifyCheck& check : report->checks) {
    EXPECT_EQ(check.state, VerifyCheck::State::passed) << check.id << ": " << check.detail;
  }
}

TEST(Emit, SameProfileSameBytes) {
  const auto first = emit(tables(), profile({family(1007), family(1006)}), {});
  const auto second = emit(tables(), profile(kApple7), {});
  EXPECT_EQ(first->bytes, second->bytes);
  EXPECT_EQ(first->sha256, hex(sha256(first->bytes)));
  EXPECT_NE(emit(tables(), profile({family(1007)}), {})->sha256, first->sha256);
}

TEST(Emit, NamesTheFileAfterItsHash) {
  EmitOptions options;
  options.name = "apple7 /../x";
  const auto emitted = emit(tables(), profile(kApple7), options);
  EXPECT_EQ(emitted->file_name,
            "libmetaldoctor-apple7..x-" + emitted->sha256.substr(0, 12) + ".dylib");
  EXPECT_EQ(run_line("/opt/it's.dylib"), "DYLD_INSERT_LIBRARIES='/opt/it'\\''s.dylib' PROGRAM");
}

TEST(Emit, OptionsGoBeforeTheProfile) {
  EmitOptions options;
  options.callers = Profile::Callers::app;
  options.scope = Profile::Scope::tree;
  EXPECT_EQ(emit(tables(), profile(kApple7), options)->profile_text,
            "mdp1;app;tree;host;1:1006=1;1:1007=1;.");
  options.observe = true;
  EXPECT_EQ(emit(tables(), profile(kApple7), options)->profile_text, "mdp1;app;tree;host;.");
}

TEST(Emit, RefusesWhatLiesAboveTheHost) {
  const auto refused = emit(tables(), profile({family(1007), family(1009)}), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::refused);
  EXPECT_EQ(refused.error().code, "above-host");
  EXPECT_THAT(refused.error().what, HasSubstr("supportsFamily:1009"));
  EmitOptions options;
  options.allow_above_host = true;
  const auto marked = emit(tables(), profile({family(1007), family(1009)}), options);
  ASSERT_TRUE(marked);
  EXPECT_EQ(marked->profile.bound, shim::Bound::above_host);
  EXPECT_EQ(marked->above_host.size(), 1u);
  EXPECT_THAT(marked->profile_text, HasSubstr(";above-host;"));
}

TEST(Emit, RefusesAHazardThatTheProfileDoesNotAccept) {
  Profile metal3 = profile({family(5001)});
  const auto refused = emit(tables(), metal3, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::refused);
  EXPECT_THAT(refused.error().what, HasSubstr("metal3-residency-in-guest"));
  metal3.accepted_hazards = {"metal3-residency-in-guest"};
  EXPECT_TRUE(emit(tables(), metal3, {}));
}

TEST(Emit, TheHostDecides) {
  EXPECT_FALSE(emit(tables(), profile({family(1009)}, "M1"), {}));
  EXPECT_TRUE(emit(tables(), profile({family(1009)}, "M3"), {}));
  const Answer memory{{"maxThreadgroupMemoryLength", {}}, std::int64_t{65536}};
  EXPECT_FALSE(emit(tables(), profile({memory}, "M4"), {}));
  const auto unknown = emit(tables(), profile(kApple7, "M99"), {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, "bound-unknown");
}

TEST(Emit, ALoweringProfileNeedsNoHost) {
  const auto lowered = emit(tables(), profile({family(1001), family(1007, false)}, ""), {});
  ASSERT_TRUE(lowered) << lowered.error().what;
  EXPECT_EQ(lowered->profile.bound, shim::Bound::none);
  EXPECT_FALSE(emit(tables(), profile({family(1009)}, ""), {})) << "not every Mac answers so";
}

TEST(Emit, RefusesWhatTheLibraryCannotAnswer) {
  const std::vector<std::pair<Answer, std::string>> cases = {
      {{{"name", {}}, std::string("Apple M1")}, "profile-not-overridable"},
      {{{"supportsFamily:", {1006}}, std::int64_t{1}}, "profile-answer"},
      {{{"maxThreadgroupMemoryLength", {}}, true}, "profile-answer"},
      {{{"maxThreadgroupMemoryLength", {}}, std::int64_t{-1}}, "profile-answer"},
      {{{"supportsFamily:", {1006}}, Value{}}, "profile-answer"},
      {{{"supportsFamily:", {std::int64_t{1} << 54}}, true}, "profile-argument"},
      {{{"supportsFamily:", {}}, true}, "query-argument"},
      {{{"noSuchQuery", {}}, true}, "query-unknown"},
  };
  for (const auto& [change, code] : cases) {
    const auto emitted = emit(tables(), profile({change}), {});
    ASSERT_FALSE(emitted) << to_string(change.key);
    EXPECT_EQ(emitted.error().code, code) << to_string(change.key);
  }
  EXPECT_EQ(emit(tables(), profile({family(1006), family(1006, false)}), {}).error().code,
            "profile-duplicate");
}

TEST(Emit, AnArm64eSliceOnRequest) {
  EmitOptions options;
  options.arm64e = true;
  const auto emitted = emit(tables(), profile(kApple7), options);
  ASSERT_TRUE(emitted) << emitted.error().what;
  ASSERT_EQ(emitted->slices.size(), 3u);
  EXPECT_EQ(emitted->slices[2].arch, "arm64e");
  const auto report = verify_static(tables(), emitted->bytes, "out");
  for (const VerifyCheck& check : report->checks) {
    EXPECT_EQ(check.state, VerifyCheck::State::passed) << check.id << ": " << check.detail;
  }
  // dyld compares all 32 bits of the subtype: with the version of the pointer authentication ABI.
  const auto file = MachOFile::read(emitted->bytes, "out");
  EXPECT_EQ(file->slices()[2].cpu_subtype, 0x80000002u);
  // The other slices are those of a library without it.
  const auto plain = emit(tables(), profile(kApple7), {});
  const auto plain_file = MachOFile::read(plain->bytes, "out");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::ranges::equal(file->slices()[i].bytes, plain_file->slices()[i].bytes));
  }
}

TEST(Specialise, RefusesWhatIsNoTemplateOfThisVersion) {
  const auto emitted = emit(tables(), profile(kApple7), {});
  EXPECT_THAT(specialise(emitted->bytes, "out", "mdp1;").error().what,
              HasSubstr("holds a profile already"));
  std::vector<std::uint8_t> other(embedded_template().begin(), embedded_template().end());
  const std::string_view mark = "mdtemplate1;";
  const auto at = std::search(other.begin(), other.end(), mark.begin(), mark.end());
  at[10] = '2';
  EXPECT_THAT(specialise(other, "out", "mdp1;").error().what, HasSubstr("another version"));
  const std::vector<std::uint8_t> text(100, 'x');
  EXPECT_FALSE(specialise(text, "out", "mdp1;"));
}

class Signing : public testing::TestWithParam<const char*> {};

TEST_P(Signing, RenewingTheTemplateGivesWhatTheLinkerWrote) {
  const Bytes original = template_slice(GetParam());
  ASSERT_FALSE(original.empty());
  std::vector<std::uint8_t> bytes(original.begin(), original.end());
  const auto file = MachOFile::read(original, "template");
  const auto image = Image::read(file->slices()[0]);
  const Range signature = image->linkedit().code_signature;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(signature.offset + signature.size - 64),
              64, std::uint8_t{0xee});  // the last two hashes: they must come back
  ASSERT_TRUE(sign_adhoc(bytes, "template", kAdhoc | kLinkerSigned));
  EXPECT_TRUE(std::ranges::equal(bytes, original));
}

TEST_P(Signing, EachPageIsChecked) {
  const Bytes original = template_slice(GetParam());
  for (std::size_t page = 0; page * 4096 < original.size(); ++page) {
    std::vector<std::uint8_t> bytes(original.begin(), original.end());
    const std::size_t at = page * 4096 + 4095;
    const auto file = MachOFile::read(bytes, "template");
    const auto image = Image::read(file->slices()[0]);
    if (at >= image->linkedit().code_signature.offset) continue;
    bytes[at] ^= 0x10;
    EXPECT_THAT(check_signature(*image)->wrong_pages, ElementsAre(page));
  }
}

INSTANTIATE_TEST_SUITE_P(Slices, Signing, testing::Values("arm64", "x86_64"));

TEST(Verify, ATemplateIsNamedSo) {
  const auto report = verify_static(tables(), embedded_template(), "template");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->passed());
  EXPECT_TRUE(report->is_template);
  EXPECT_FALSE(report->profile);
}

TEST(Verify, ComparesWithTheExpectedProfile) {
  const auto emitted = emit(tables(), profile(kApple7), {});
  const Profile same = profile(kApple7), other = profile({family(1007)});
  EXPECT_TRUE(verify_static(tables(), emitted->bytes, "out", &same)->passed());
  EXPECT_FALSE(verify_static(tables(), emitted->bytes, "out", &other)->passed());
}

// Every byte counts: header, padding between the slices, code, profile, signature.
TEST(Verify, AnyFlippedByteFails) {
  const auto emitted = emit(tables(), profile(kApple7), {});
  std::vector<std::uint8_t> bytes = emitted->bytes;
  std::size_t tried = 0;
  for (std::size_t at = 0; at < bytes.size(); at += at < 256 ? 1 : 97) {
    bytes[at] ^= 0x01;
    const auto report = verify_static(tables(), bytes, "out");
    EXPECT_FALSE(report && report->passed()) << "byte " << at;
    bytes[at] ^= 0x01;
    ++tried;
  }
  EXPECT_GT(tried, 500u);
}

TEST(Verify, ACutFileFails) {
  const auto emitted = emit(tables(), profile(kApple7), {});
  for (std::size_t size = 0; size < emitted->bytes.size(); size += 509) {
    const auto report = verify_static(tables(), Bytes(emitted->bytes).first(size), "out");
    EXPECT_FALSE(report && report->passed()) << size;
  }
}

TEST(Verify, OneArchitectureIsNotEnough) {
  const auto report = verify_static(tables(), template_slice("arm64"), "thin");
  ASSERT_TRUE(report);
  EXPECT_THAT(report->check("architectures")->detail, HasSubstr("no x86_64"));
}

// A library of the kind that was published before: readable, and named for what it is.
TEST(Verify, SaysWhatASwizzlingLibraryDoes) {
  std::ifstream in(METALDOCTOR_SWIZZLE, std::ios::binary);
  const std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(in)), {});
  const auto report = verify_static(tables(), bytes, "libswizzle.dylib");
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_FALSE(report->passed());
  EXPECT_FALSE(report->is_ours);
  EXPECT_EQ(report->check("imports")->state, VerifyCheck::State::failed);
  EXPECT_THAT(report->check("imports")->detail,
              HasSubstr("_method_setImplementation (changes a method for every class"));
  EXPECT_EQ(report->check("install-name")->state, VerifyCheck::State::failed);
  EXPECT_EQ(report->check("signature")->state, VerifyCheck::State::passed);
  EXPECT_EQ(report->check("profile")->state, VerifyCheck::State::not_applicable);
  EXPECT_EQ(report->check("template")->state, VerifyCheck::State::not_checked);
}

// Whatever a library of another maker does where nobody looked, it must not pass.
TEST(Verify, OnlyWhatThisProgramMadeCanPass) {
  VerifyReport report;
  report.checks = {{"answers", VerifyCheck::State::passed, "", Evidence::executed},
                   {"template", VerifyCheck::State::not_checked, "", Evidence::read}};
  EXPECT_EQ(report.verdict(), VerifyReport::Verdict::incomplete);
  const auto emitted = emit(tables(), profile(kApple7), {});
  EXPECT_EQ(verify_static(tables(), emitted->bytes, "ours")->check("template")->state,
            VerifyCheck::State::passed);
}

TEST(Verify, MoreCallersOrChildrenThanTheProfileSaysFail) {
  Profile narrow = profile(kApple7);
  narrow.callers = Profile::Callers::app;
  EmitOptions wide;
  wide.callers = Profile::Callers::all;
  const auto all = emit(tables(), narrow, wide);
  const auto report = verify_static(tables(), all->bytes, "all", &narrow);
  EXPECT_THAT(report->check("profile")->detail, HasSubstr("every caller"));
  wide = {};
  wide.scope = Profile::Scope::tree;
  const auto tree = emit(tables(), narrow, wide);
  EXPECT_THAT(verify_static(tables(), tree->bytes, "tree", &narrow)->check("profile")->detail,
              HasSubstr("children"));
  EXPECT_EQ(verify_static(tables(), emit(tables(), narrow, {})->bytes, "narrow", &narrow)
                ->check("profile")
                ->state,
            VerifyCheck::State::passed);
}

TEST(Verify, ABoundThatDoesNotHoldFails) {
  const Profile above = profile({family(1009)});
  const auto forged = make_library("mdp1;all;process;host;1:1009=1;.", false);
  const auto report = verify_static(tables(), *forged, "forged", &above);
  EXPECT_EQ(report->check("profile")->state, VerifyCheck::State::failed);
  EXPECT_THAT(report->check("profile")->detail, HasSubstr("it says bound: host"));
}

TEST(Verify, WhatIsNoLibraryIsAnError) {
  const std::string text = "not a Mach-O file at all";
  EXPECT_FALSE(verify_static(
      tables(), {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, "text"));
  EXPECT_FALSE(verify_static(tables(), {}, "empty"));
}

// Design targets of the library itself.
TEST(Template, IsSmallAndImportsLittle) {
  EXPECT_LE(template_slice("arm64").size(), 36u * 1024);
  const auto report = verify_static(tables(), embedded_template(), "template");
  EXPECT_THAT(report->check("imports")->detail, HasSubstr("arm64 16"));
}

}  // namespace
}  // namespace metaldoctor
