#include "shim/inject/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "shim/emit.h"
#include "tests/unit/inject/program_builder.h"

namespace metaldoctor {
namespace {

using ::testing::HasSubstr;
using testing::ProgramBuilder;
using testing::SignatureBuilder;
using Sip = PreflightWorld::Sip;

constexpr const char* kAllowDyld = "com.apple.security.cs.allow-dyld-environment-variables";
constexpr const char* kDisableLv = "com.apple.security.cs.disable-library-validation";
constexpr std::uint32_t kRuntime = 0x10000;

const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

/// A signature by an identity, with both forms of its entitlements.
SignatureBuilder identity(std::uint32_t flags,
                          const std::map<std::string, bool>& entitlements = {}) {
  SignatureBuilder out;
  out.flags = flags;
  out.team = "TEAM123456";
  out.cms = true;
  if (!entitlements.empty()) {
    out.xml = testing::xml_entitlements(entitlements);
    out.der = testing::der_entitlements(entitlements);
  }
  return out;
}

struct Case {
  ProgramBuilder program;
  PreflightWorld world;
};

struct RowTest {
  const char* row;
  const char* verdict;
  std::function<void(Case&)> arrange;
};

// One a row of the table, in its order. Every case starts from an ad-hoc signed arm64 program in a
// place that is not of macOS.
const RowTest kRowTests[] = {
    {"set-id", "refused", [](Case& c) { c.world.set_id = true; }},
    {"restrict-section", "refused", [](Case& c) { c.program.restrict_section = true; }},
    {"system-sip-on", "refused",
     [](Case& c) {
       c.world.path = "/usr/bin/true";
       c.world.sip = Sip::on;
     }},
    {"system-no-arm64e", "killed",
     [](Case& c) {
       c.world.path = "/bin/sh";
       c.world.sip = Sip::off;
     }},
    {"system-arm64e-old", "killed",
     [](Case& c) {
       c.world.path = "/bin/sh";
       c.world.sip = Sip::off;
       c.world.os = OsVersion{14, 3, 1};
       c.world.library_archs = {"arm64", "arm64e"};
     }},
    {"system-arm64e", "works",
     [](Case& c) {
       c.program.signature->platform = 15;  // an Apple app outside the system's directories
       c.world.path = "/Applications/Safari.app/Contents/MacOS/Safari";
       c.world.sip = Sip::off;
       c.world.os = OsVersion{14, 4, 0};
       c.world.library_archs = {"arm64", "arm64e"};
     }},
    {"system-x86_64", "undecided",
     [](Case& c) {
       c.program.cpu_type = ProgramBuilder::kX86_64;
       c.program.cpu_subtype = 3;
       c.world.path = "/usr/bin/tool";
       c.world.sip = Sip::off;
     }},
    {"system-unknown", "undecided", [](Case& c) { c.world.path = "/usr/bin/python3"; }},
    {"arm64e-not-of-system", "killed", [](Case& c) { c.program.cpu_subtype = 0x80000002; }},
    {"library-missing", "killed", [](Case& c) { c.world.library_present = false; }},
    {"library-architecture", "killed", [](Case& c) { c.world.library_archs = {"x86_64"}; }},
    {"library-platform", "killed", [](Case& c) { c.program.platform = 7; }},
    {"entitlements-differ", "undecided",
     [](Case& c) {
       c.program.signature = identity(kRuntime, {{kAllowDyld, true}});
       c.program.signature->der = testing::der_entitlements({{kAllowDyld, false}});
     }},
    {"hardened-sip-off", "undecided",
     [](Case& c) {
       c.program.signature = identity(kRuntime);
       c.world.sip = Sip::off;
     }},
    {"hardened", "refused", [](Case& c) { c.program.signature = identity(kRuntime); }},
    {"hardened-library-validation", "killed",
     [](Case& c) { c.program.signature = identity(kRuntime, {{kAllowDyld, true}}); }},
    {"hardened-open", "works",
     [](Case& c) {
       c.program.signature = identity(kRuntime, {{kAllowDyld, true}, {kDisableLv, true}});
     }},
    {"get-task-allow", "undecided",
     [](Case& c) {
       c.program.signature = identity(kRuntime, {{"com.apple.security.get-task-allow", true}});
     }},
    {"library-validation", "killed", [](Case& c) { c.program.signature = identity(0x2000); }},
    {"restricted-sip-on", "refused",
     [](Case& c) {
       c.program.signature->flags |= 0x800;
       c.world.sip = Sip::on;
     }},
    {"restricted-unknown", "undecided", [](Case& c) { c.program.signature->flags |= 0x800; }},
    {"encrypted", "undecided", [](Case& c) { c.program.encrypted = true; }},
    {"sandboxed", "undecided",
     [](Case& c) {
       c.program.signature = identity(0, {{"com.apple.security.app-sandbox", true}});
     }},
    {"private-entitlements", "undecided",
     [](Case& c) { c.program.signature = identity(0, {{"com.apple.private.tcc.allow", true}}); }},
    {"dlsym-result", "works",
     [](Case& c) { c.program.dyld_environment = "DYLD_DLSYM_RESULT=null"; }},
    {"identity", "works", [](Case& c) { c.program.signature = identity(0); }},
    {"ad-hoc", "works", [](Case&) {}},
    {"unsigned-x86_64", "works",
     [](Case& c) {
       c.program.cpu_type = ProgramBuilder::kX86_64;
       c.program.cpu_subtype = 3;
       c.program.signature.reset();
     }},
    {"unsigned-arm64", "killed", [](Case& c) { c.program.signature.reset(); }},
    {"signature-odd", "undecided", [](Case& c) { c.program.signature->flags = 0; }},
};

Result<ProgramPreflight> check(const Case& c) {
  return preflight_program(tables(), c.program.build(), "program", "", c.world);
}

TEST(Preflight, EveryRowDecidesItsCase) {
  for (const RowTest& test : kRowTests) {
    Case c;
    c.world.path = "/opt/homebrew/bin/program";
    test.arrange(c);
    const auto found = check(c);
    ASSERT_TRUE(found) << test.row << ": " << found.error().where << " " << found.error().what;
    EXPECT_EQ(found->decision().row->verdict, test.verdict) << test.row;
    const bool is_remark = !found->decision().remarks.empty();
    EXPECT_EQ(is_remark ? found->decision().remarks[0]->id : found->decision().row->id, test.row);
  }
}

TEST(Preflight, EveryRowHasATest) {
  std::vector<std::string> rows, tested;
  for (const PreflightRow& row : tables().preflight_rows()) rows.push_back(row.id);
  for (const RowTest& test : kRowTests) tested.push_back(test.row);
  EXPECT_EQ(rows, tested);
}

TEST(Preflight, RowsUseFactsThatExist) {
  for (const PreflightRow& row : tables().preflight_rows()) {
    for (const auto& [fact, values] : row.when) {
      const auto& all = preflight_vocabulary();
      const auto known = std::ranges::find(all, fact, &FactValues::fact);
      ASSERT_NE(known, all.end()) << row.id << ": " << fact;
      for (const std::string& value : values) {
        EXPECT_NE(std::ranges::find(known->values, value), known->values.end())
            << row.id << ": " << value;
      }
    }
  }
}

TEST(Preflight, FactsStayInsideTheVocabulary) {
  for (const RowTest& test : kRowTests) {
    Case c;
    test.arrange(c);
    const PreflightFacts facts = check(c)->decision().facts;
    ASSERT_EQ(facts.size(), preflight_vocabulary().size());
    for (std::size_t i = 0; i < facts.size(); ++i) {
      const FactValues& known = preflight_vocabulary()[i];
      EXPECT_EQ(facts[i].first, known.fact);
      EXPECT_NE(std::ranges::find(known.values, facts[i].second), known.values.end());
    }
  }
}

// The official Deno: hardened, signed by a team, JIT entitlements beside the two that count.
TEST(Preflight, HardenedWithBothEntitlementsInOneFormOnly) {
  const std::map<std::string, bool> keys{
      {kAllowDyld, true},
      {kDisableLv, true},
      {"com.apple.security.cs.allow-jit", true},
      {"com.apple.security.cs.allow-unsigned-executable-memory", true}};
  for (const bool xml_only : {true, false}) {
    Case c;
    c.program.signature = identity(kRuntime, keys);
    (xml_only ? c.program.signature->der.reset() : c.program.signature->xml.reset());
    EXPECT_EQ(check(c)->decision().row->id, "hardened-open");
  }
}

TEST(Preflight, AFalseEntitlementIsNone) {
  Case c;
  c.program.signature = identity(kRuntime, {{kAllowDyld, false}, {kDisableLv, true}});
  EXPECT_EQ(check(c)->decision().row->id, "hardened");
}

TEST(Preflight, DamagedEntitlementsDecideNothing) {
  Case c;
  c.program.signature = identity(kRuntime, {{kAllowDyld, true}, {kDisableLv, true}});
  c.program.signature->xml = "<plist><dict><key>";
  const auto found = check(c);
  EXPECT_EQ(found->decision().row->id, "entitlements-differ");
  EXPECT_THAT(found->decision().entitlements_problem, HasSubstr("no property list"));
}

TEST(Preflight, TheSliceThatAMacStartsDecides) {
  Case c;
  ProgramBuilder intel;
  intel.cpu_type = ProgramBuilder::kX86_64;
  intel.cpu_subtype = 3;
  intel.signature = identity(kRuntime);
  const auto bytes = testing::universal({intel, c.program});
  const auto found = preflight_program(tables(), bytes, "program", "", c.world);
  ASSERT_TRUE(found) << found.error().what;
  ASSERT_EQ(found->slices.size(), 2u);
  EXPECT_EQ(found->decision().arch, "arm64");
  EXPECT_TRUE(found->decision().works());
  EXPECT_EQ(preflight_program(tables(), bytes, "program", "x86_64", c.world)->decision().row->id,
            "hardened");
  EXPECT_EQ(preflight_program(tables(), bytes, "program", "arm64e", c.world).error().code,
            "no-slice");
}

TEST(Preflight, WhatIsNoProgramIsRefused) {
  Case c;
  c.program.file_type = 6;
  EXPECT_EQ(check(c).error().code, "not-a-program");
  const std::string text = "#!/bin/sh\n";
  const Bytes bytes{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  EXPECT_FALSE(preflight_program(tables(), bytes, "script", "", {}));
}

TEST(Preflight, DamageAtEveryLengthIsNoCrash) {
  Case c;
  c.program.signature = identity(kRuntime, {{kAllowDyld, true}});
  const auto whole = c.program.build();
  for (std::size_t size = 0; size < whole.size(); size += size < 512 ? 1 : 37) {
    (void)preflight_program(tables(), Bytes(whole).first(size), "program", "", {});
  }
}

TEST(Preflight, PlacesOfMacos) {
  for (const char* path : {"/bin/sh", "/usr/bin/env", "/sbin/mount", "/System/Library/x"}) {
    EXPECT_TRUE(is_system_path(tables(), path)) << path;
  }
  for (const char* path : {"/usr/local/bin/x", "/opt/homebrew/bin/x", "/binx/y", "/Users/a/usr/x",
                           "/System/Volumes/Data/Users/a/x", "relative"}) {
    EXPECT_FALSE(is_system_path(tables(), path)) << path;
  }
}

// What emit makes fits what preflight takes for granted.
TEST(Preflight, TheEmittedLibraryHasTheArchitecturesAssumed) {
  const auto file = MachOFile::read(embedded_template(), "template");
  std::vector<std::string> archs;
  for (const Slice& slice : file->slices()) archs.push_back(slice.arch);
  std::ranges::sort(archs);
  EXPECT_EQ(archs, PreflightWorld().library_archs);
}

}  // namespace
}  // namespace metaldoctor
