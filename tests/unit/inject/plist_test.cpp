#include "shim/inject/plist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/inject/binary_plist.h"

namespace metaldoctor {
namespace {

using testing::BinaryPlist;
using ::testing::HasSubstr;

std::string xml(const std::string& body) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST "
         "1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist "
         "version=\"1.0\">" +
         body + "</plist>\n";
}

TEST(Plist, ReadsAndEditsXml) {
  auto list = Plist::read(xml("<dict><key>Label</key><string>a&amp;b</string><key>N</key>"
                              "<integer>7</integer><key>Args</key><array><string>x</string>"
                              "<string>y z</string></array><key>Env</key><dict><key>A</key>"
                              "<string>1</string></dict><key>When</key>"
                              "<date>2026-01-02T03:04:05Z</date></dict>"),
                          "t");
  ASSERT_TRUE(list) << list.error().what;
  EXPECT_EQ(list->text("Label"), "a&b");
  EXPECT_EQ(list->text("N"), std::nullopt);
  EXPECT_EQ(list->texts("Args"), (std::vector<std::string>{"x", "y z"}));
  EXPECT_EQ(list->text("Env", "A"), "1");
  list->set_text("Env", "B", "<2>");
  list->set_texts("Args", {"only"});
  const auto again = Plist::read(list->write(), "t");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text("Env", "A"), "1");
  EXPECT_EQ(again->text("Env", "B"), "<2>");
  EXPECT_EQ(again->texts("Args"), std::vector<std::string>{"only"});
  EXPECT_THAT(list->write(), HasSubstr("<date>2026-01-02T03:04:05Z</date>"));
}

TEST(Plist, BinaryStaysBinary) {
  BinaryPlist file;
  file.text("Label").text("x").dictionary({0}, {1});
  auto list = Plist::read(file.build(2), "t");
  ASSERT_TRUE(list) << list.error().what;
  EXPECT_EQ(list->text("Label"), "x");
  list->set_text("Label", "y");
  EXPECT_THAT(list->write(), ::testing::StartsWith("bplist00"));
  EXPECT_EQ(Plist::read(list->write(), "t")->text("Label"), "y");
}

TEST(Plist, RefusesWhatIsNone) {
  for (const std::string& text :
       {std::string(), std::string("hello"), std::string("<plist>"), xml("<array/>"), xml(""),
        std::string("bplist00"), std::string("bplist00") + std::string(40, '\0')}) {
    const auto list = Plist::read(text, "t");
    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.error().fault, Fault::input);
  }
}

TEST(Plist, RefusesTextsThatItCouldNotWriteBack) {
  BinaryPlist value, key;
  value.text("Label").text("\xf8").dictionary({0}, {1});
  key.text("L\xff").text("x").dictionary({0}, {1});
  EXPECT_THAT(Plist::read(value.build(2), "t").error().what, HasSubstr("not UTF-8"));
  EXPECT_THAT(Plist::read(key.build(2), "t").error().what, HasSubstr("not UTF-8"));
}

// libplist ends the process on them.
TEST(Plist, RefusesTextsWithANul) {
  const std::string start = "<plist version=\"1.0\"><dict><key>Label</key><string>a";
  const std::string end = "b</string></dict></plist>";
  for (const std::string& nul :
       {std::string(1, '\0'), std::string("&#0;"), std::string("&#x00;")}) {
    EXPECT_FALSE(Plist::read(start + nul + end, "x.plist")) << nul;
  }
  EXPECT_TRUE(Plist::read(start + "&#10;" + end, "x.plist"));
}

TEST(Plist, RefusesBombs) {
  std::string nested = "<dict><key>a</key>";
  for (int i = 0; i < 12'000; ++i) nested += "<array>";
  for (int i = 0; i < 12'000; ++i) nested += "</array>";
  EXPECT_FALSE(Plist::read(xml(nested + "</dict>"), "t"));

  std::string shallower = "<dict><key>a</key>";
  for (int i = 0; i < 4'000; ++i) shallower += "<array>";
  for (int i = 0; i < 4'000; ++i) shallower += "</array>";
  const auto deep = Plist::read(xml(shallower + "</dict>"), "t");
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().what, HasSubstr("nested more than 64"));

  std::string in_comments = "<dict><key>a</key>";
  for (int i = 0; i < 12'000; ++i) in_comments += "<array><!-- </array> -->";
  EXPECT_FALSE(Plist::read(xml(in_comments), "t"));

  std::string many = "<dict>";
  for (int i = 0; i < 30'000; ++i) many += "<key>a</key><true/>";
  EXPECT_FALSE(Plist::read(xml(many + "</dict>"), "t"));
  EXPECT_FALSE(Plist::read(std::string(std::size_t{2} << 20, ' '), "t"));
}

// Each array holds the one before it ten times: 10^40 values in some hundred bytes.
TEST(Plist, RefusesSharedContainers) {
  BinaryPlist file;
  file.text("a").array({});
  for (std::uint8_t i = 1; i <= 40; ++i) file.array(std::vector<std::uint8_t>(10, i));
  file.dictionary({0}, {41});
  const auto start = std::chrono::steady_clock::now();
  const auto list = Plist::read(file.build(42), "t");
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().what, HasSubstr("written out"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Plist, RefusesAContainerThatHoldsItself) {
  BinaryPlist file;
  file.text("a").array({1}).dictionary({0}, {1});
  EXPECT_THAT(Plist::read(file.build(2), "t").error().what, HasSubstr("holds itself"));
}

TEST(Plist, RefusesDeepBinary) {
  BinaryPlist file;
  file.text("a").array({});
  for (std::uint8_t i = 1; i < 100; ++i) file.array({i});
  file.dictionary({0}, {100});
  EXPECT_THAT(Plist::read(file.build(101), "t").error().what, HasSubstr("nested"));
}

TEST(Plist, DamageAtEveryByteIsNoCrash) {
  BinaryPlist file;
  file.text("Label").text("x").array({0, 1}).dictionary({0, 1}, {1, 2});
  const std::string whole = file.build(3);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string broken = whole;
      broken[i] = static_cast<char>(broken[i] ^ flip);
      (void)Plist::read(broken, "t");
    }
    (void)Plist::read(whole.substr(0, i), "t");
  }
}

TEST(Plist, TellsWhatCanBeWritten) {
  EXPECT_TRUE(fits_plist("a\tb\nc <>&\"' \xc3\xa4 \xf0\x9f\x98\x80"));
  for (const char* text :
       {"\x01", "\x1b[m", "\xff", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "a\rb", "\x7f"}) {
    EXPECT_FALSE(fits_plist(text)) << text;
  }
}

}  // namespace
}  // namespace metaldoctor
