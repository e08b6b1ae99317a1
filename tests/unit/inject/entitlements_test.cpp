#include "shim/inject/entitlements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/inject/program_builder.h"

namespace metaldoctor {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using State = Entitlements::State;

CodeSignature with(const std::string& xml, const std::vector<std::uint8_t>& der) {
  CodeSignature out;
  out.entitlements = xml;
  out.entitlements_der = der;
  return out;
}

TEST(DerEntitlements, ReadsEveryKindOfValue) {
  // {1: [APPLICATION 16] { 1, [16] { {a, 258}, {b, ["x"]}, {c, [16]{ {d, "y"} }}, {e, true} } }}
  const std::vector<std::uint8_t> der{
      0x70, 0x36, 0x02, 0x01, 0x01, 0xb0, 0x31,                   //
      0x30, 0x07, 0x0c, 0x01, 'a',  0x02, 0x02, 0x01, 0x02,       //
      0x30, 0x08, 0x0c, 0x01, 'b',  0x30, 0x03, 0x0c, 0x01, 'x',  //
      0x30, 0x0d, 0x0c, 0x01, 'c',  0xb0, 0x08, 0x30, 0x06, 0x0c, 0x01, 'd', 0x0c, 0x01, 'y',
      0x30, 0x0d, 0x0c, 0x08, 'e',  'e',  'e',  'e',  'e',  'e',  'e',  'e', 0x01, 0x01, 0xff,
  };
  std::vector<std::uint8_t> fixed = der;
  fixed[1] = static_cast<std::uint8_t>(der.size() - 2);
  fixed[6] = static_cast<std::uint8_t>(der.size() - 7);
  const auto values = read_der_entitlements(fixed, "t");
  ASSERT_TRUE(values);
  EXPECT_THAT(*values, ElementsAre(Pair("a", "258"), Pair("b", "[\"x\"]"),
                                   Pair("c", "{\"d\":\"y\"}"), Pair("eeeeeeee", "true")));
}

TEST(DerEntitlements, RefusesDamageAtEveryLengthAndByte) {
  const auto whole = testing::der_entitlements({{"a.key", true}, {"b.key", false}});
  ASSERT_TRUE(read_der_entitlements(whole, "t"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_der_entitlements(Bytes(whole).first(size), "t")) << size;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto broken = whole;
    broken[i] ^= 0x81;
    (void)read_der_entitlements(broken, "t");
  }
}

TEST(DerEntitlements, RefusesDeepNesting) {
  std::vector<std::uint8_t> value{0x01, 0x01, 0xff};
  for (int i = 0; i < 40; ++i) {
    value.insert(value.begin(), {0x30, static_cast<std::uint8_t>(value.size())});
    if (value.size() > 100) break;
  }
  value.insert(value.begin(), {0x0c, 0x01, 'a'});
  value.insert(value.begin(), {0x30, static_cast<std::uint8_t>(value.size())});
  value.insert(value.begin(), {0xb0, static_cast<std::uint8_t>(value.size())});
  value.insert(value.begin(), {0x02, 0x01, 0x01});
  value.insert(value.begin(), {0x70, static_cast<std::uint8_t>(value.size())});
  EXPECT_FALSE(read_der_entitlements(value, "t"));
}

TEST(Entitlements, TheTwoFormsAgreeOrNot) {
  const std::map<std::string, bool> keys{{"a.b", true}, {"c", false}};
  const auto xml = testing::xml_entitlements(keys);
  const auto der = testing::der_entitlements(keys);
  EXPECT_EQ(read_entitlements(with("", {}), "t").state, State::none);
  EXPECT_EQ(read_entitlements(with(xml, {}), "t").state, State::read);
  EXPECT_EQ(read_entitlements(with("", der), "t").state, State::read);
  const Entitlements both = read_entitlements(with(xml, der), "t");
  EXPECT_EQ(both.state, State::read);
  EXPECT_TRUE(both.has("a.b"));
  EXPECT_FALSE(both.has("c"));
  EXPECT_TRUE(both.has_any_below("a."));
  EXPECT_FALSE(both.has_any_below("b"));
  const auto other = testing::der_entitlements({{"a.b", true}});
  EXPECT_EQ(read_entitlements(with(xml, other), "t").state, State::differ);
  EXPECT_EQ(read_entitlements(with("<plist>", der), "t").state, State::damaged);
  EXPECT_EQ(read_entitlements(with(xml, {0x70, 1}), "t").state, State::damaged);
}

}  // namespace
}  // namespace metaldoctor
