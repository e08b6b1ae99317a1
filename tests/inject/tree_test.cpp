// audit over directories and bundles, and the merging of its documents.
#include "tests/inject/support.h"
#include "tests/unit/inject/program_builder.h"

namespace metaldoctor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Home;
namespace fs = testing::fs;

void add(const Home& home, const std::string& name, const std::string& identifier,
         std::uint32_t flags = 2) {
  testing::ProgramBuilder program;
  program.signature->identifier = identifier;
  program.signature->flags = flags;
  program.signature->cms = flags != 2;
  const auto bytes = program.build();
  home.write(name, {bytes.begin(), bytes.end()});
}

Json audited(const Home& home, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"audit", "--format", "json"});
  const auto done = home.tool(arguments);
  EXPECT_EQ(done.end.status(), 0) << done.err;
  const auto document = read_document(done.out, "audit", "out");
  EXPECT_TRUE(document) << document.error().where << document.error().what;
  return document ? *document : Json::object();
}

void add_app(const Home& home) {
  add(home, "A.app/Contents/MacOS/Main", "main", 0x10000);
  add(home, "A.app/Contents/Frameworks/F.framework/Versions/A/F", "f");
  add(home, "A.app/Contents/Helpers/copy", "f");  // the same bytes once more
  home.write("A.app/Contents/Info.plist", "<plist/>");
  home.write("A.app/Contents/Resources/text", "text");
  fs::create_symlink("Versions/A/F", home.path("A.app/Contents/Frameworks/F.framework/F"));
  fs::create_directory_symlink("..", home.path("A.app/Contents/Frameworks/F.framework/loop"));
}

TEST(AuditTree, ABundleIsWalked) {
  const Home home;
  add_app(home);
  const Json document = audited(home, {home.path("A.app")});
  EXPECT_EQ(document.at("tree"), (Json{{"files", 3}, {"others", 2}, {"copies", 1}}));
  ASSERT_EQ(document.at("images").size(), 2u);
  EXPECT_EQ(document.at("images")[1].at("injection").at("row"), "hardened");
  EXPECT_EQ(document.at("images")[0].at("injection").at("verdict"), "works");
  const auto text = home.tool({"audit", home.path("A.app")});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("3 Mach-O file(s), 1 image(s) left out as copies, 2 file(s)"),
                    HasSubstr("injection refused silently")));
}

TEST(AuditTree, ThreadsDoNotChangeTheDocument) {
  const Home home;
  for (int i = 0; i < 40; ++i) {
    add(home, "tree/" + std::to_string(i), "p" + std::to_string(i));
  }
  const Json one = audited(home, {"--threads", "1", home.path("tree")});
  EXPECT_EQ(one.at("images").size(), 40u);
  EXPECT_EQ(audited(home, {"--threads", "4", home.path("tree")}), one);
}

TEST(AuditTree, DamageIsReportedAndTheRestAudited) {
  const Home home;
  add(home, "tree/good", "good");
  home.write("tree/bad", std::string("\xcf\xfa\xed\xfe", 4) + "cut");
  const auto done = home.tool({"audit", home.path("tree")});
  EXPECT_EQ(done.end.status(), 3);
  EXPECT_THAT(done.err, HasSubstr("tree/bad"));
  EXPECT_THAT(done.out, HasSubstr("tree/good"));
  EXPECT_EQ(home.tool({"audit", home.path("none")}).end.status(), 3);
}

TEST(AuditTree, PartsMergeToTheWhole) {
  const Home home;
  add_app(home);
  const auto part = [&](const std::string& below, const std::string& out) {
    EXPECT_EQ(home.tool({"audit", "--format", "json", "-o", home.path(out), home.path(below)})
                  .end.status(),
              0);
    return home.path(out);
  };
  const std::string a = part("A.app/Contents/Frameworks", "a.json");
  const std::string b = part("A.app/Contents/Helpers", "b.json");
  const std::string c = part("A.app/Contents/MacOS", "c.json");
  const auto merged = home.tool({"audit", "--merge", a, b, c});
  ASSERT_EQ(merged.end.status(), 0) << merged.err;
  const auto document = read_document(merged.out, "audit", "out");
  ASSERT_TRUE(document) << document.error().what;
  EXPECT_EQ(document->at("images").size(), 2u);
  EXPECT_EQ(document->at("tree").at("copies"), 1);
  home.write("other.json", "{\"schema\": \"metaldoctor.profile/1\"}");
  EXPECT_EQ(home.tool({"audit", "--merge", a, home.path("other.json")}).end.status(), 3);
  EXPECT_EQ(home.tool({"audit", "--merge", a, home.path("none")}).end.status(), 3);
}

}  // namespace
}  // namespace metaldoctor
