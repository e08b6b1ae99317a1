#include "tables/document.h"

#include <gtest/gtest.h>

#include <string>

#include "tables/embedded_file.h"

namespace metaldoctor {
namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string object_with_members(std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) {
    text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  }
  return text + "}";
}

struct Bad {
  std::string name;
  std::string text;
  std::string code;
  std::string where;  ///< empty = any offset
};

void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.name;
}

class BadJson : public testing::TestWithParam<Bad> {};

TEST_P(BadJson, IsRefusedWithCodeAndOffset) {
  const Bad& bad = GetParam();
  const auto result = parse_json(bad.text, "in.json");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().fault, Fault::input);
  EXPECT_EQ(result.error().code, bad.code) << result.error().what;
  EXPECT_TRUE(result.error().where.starts_with("in.json: offset 0x")) << result.error().where;
  if (!bad.where.empty()) EXPECT_EQ(result.error().where, bad.where);
  EXPECT_FALSE(result.error().what.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Document, BadJson,
    testing::Values(
        Bad{"empty", "", "json-syntax", ""},
        Bad{"truncated", R"({"a": )", "json-syntax", "in.json: offset 0x7"},
        Bad{"truncated_string", R"({"a": "b)", "json-syntax", ""},
        Bad{"trailing_comma", "[1,]", "json-syntax", "in.json: offset 0x4"},
        Bad{"two_values", "{} {}", "json-syntax", "in.json: offset 0x4"},
        Bad{"nul_byte", std::string("[1\0]", 4), "json-syntax", ""},
        Bad{"control_character", "[\"a\tb\"]", "json-syntax", ""},
        Bad{"comment", "[1] // one", "json-syntax", ""},
        Bad{"not_a_number", "[NaN]", "json-syntax", ""},
        Bad{"bad_utf8", "[\"\xff\xfe\"]", "json-syntax", "in.json: offset 0x3"},
        Bad{"overlong_utf8", "[\"\xc0\x80\"]", "json-syntax", ""},
        Bad{"surrogate_utf8", "[\"\xed\xa0\x80\"]", "json-syntax", ""},
        Bad{"lone_surrogate", R"(["\ud800"])", "json-syntax", ""},
        Bad{"deep_arrays", repeated("[", 100000), "json-too-deep", "in.json: offset 0x41"},
        Bad{"deep_objects", repeated("{\"a\":", 100000), "json-too-deep", ""},
        Bad{"integer_over_2_53", "[9007199254740993]", "json-number", ""},
        Bad{"integer_under_2_53", "[-9007199254740993]", "json-number", ""},
        Bad{"integer_over_2_63", "[9223372036854775808]", "json-number", ""},
        Bad{"integer_over_2_64", "[99999999999999999999999]", "json-number", ""},
        Bad{"infinite", "[1e999]", "json-syntax", ""},
        Bad{"duplicate_key", R"({"a": 1, "b": {"a": 2}, "a": 3})", "json-duplicate-key", ""},
        Bad{"duplicate_key_escaped", R"({"a": 1, "\u0061": 2})", "json-duplicate-key", ""},
        Bad{"too_many_members", object_with_members(1025), "json-too-large", ""}),
    [](const auto& info) { return info.param.name; });

TEST(Document, TakesWhatIsWithinTheBounds) {
  EXPECT_TRUE(parse_json("[9007199254740992, -9007199254740992, 1.5, 1e3]", "n").has_value());
  EXPECT_TRUE(parse_json(repeated("[", 64) + repeated("]", 64), "n").has_value());
  EXPECT_FALSE(parse_json(repeated("[", 65) + repeated("]", 65), "n").has_value());
  EXPECT_TRUE(parse_json(object_with_members(1024), "n").has_value());
  EXPECT_TRUE(parse_json(R"({"a": {"b": 1}, "b": [{"a": 1}, {"a": 1}]})", "n").has_value());
  EXPECT_EQ(parse_json("{\"\xc3\xa4\": \"\\u00e4\"}", "n")->begin().value(), "\xc3\xa4");
}

TEST(Document, KeepsTheOrderOfMembers) {
  EXPECT_EQ(parse_json(R"({"z": 1, "a": 2})", "n")->dump(), R"({"z":1,"a":2})");
}

TEST(Document, BoundsBytesAndValues) {
  const auto large = parse_json("[1, 2, 3]", "n", {.bytes = 8});
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, "json-too-large");
  EXPECT_TRUE(parse_json("[1, 2]", "n", {.values = 3}).has_value());
  const auto many = parse_json("[1, 2, 3]", "n", {.values = 3});
  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().code, "json-too-large");
}

constexpr std::string_view kCapture = R"({
  "schema": "metaldoctor.capture/1",
  "device": {"name": "Apple M1"},
  "system": {},
  "answers": [
    {"query": "supportsFamily:", "arguments": [1007], "answer": true, "evidence": "measured",
     "source": {"kind": "live"}}
  ]
})";

TEST(Document, ReadsACapture) {
  const auto capture = read_document(kCapture, "capture", "c.json");
  ASSERT_TRUE(capture.has_value()) << capture.error().where << capture.error().what;
  EXPECT_EQ(capture->at("device").at("name"), "Apple M1");
}

struct Edit {
  std::string name, find, replace, where;
};

void PrintTo(const Edit& edit, std::ostream* out) {
  *out << edit.name;
}

class InvalidCapture : public testing::TestWithParam<Edit> {};

TEST_P(InvalidCapture, IsRefusedWithAPointer) {
  std::string text(kCapture);
  const std::size_t at = text.find(GetParam().find);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, GetParam().find.size(), GetParam().replace);
  const auto capture = read_document(text, "capture", "c.json");
  ASSERT_FALSE(capture.has_value());
  EXPECT_EQ(capture.error().fault, Fault::input);
  EXPECT_EQ(capture.error().where, GetParam().where) << capture.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    Document, InvalidCapture,
    testing::Values(Edit{"other_kind", "capture/1", "profile/1", "c.json: /schema"},
                    Edit{"future_version", "capture/1", "capture/2", "c.json: /schema"},
                    Edit{"no_schema", "\"schema\"", "\"scheme\"", "c.json: /schema"},
                    Edit{"unknown_field", "\"system\": {}", "\"system\": {\"cores\": 8}",
                         "c.json: /system"},
                    Edit{"missing_field", "\"device\": {\"name\": \"Apple M1\"},", "", "c.json: /"},
                    Edit{"wrong_type", "[1007]", "\"1007\"", "c.json: /answers/0/arguments"},
                    Edit{"wrong_member", "[1007]", "[\"1007\"]", "c.json: /answers/0/arguments/0"},
                    Edit{"no_such_evidence", "measured", "guessed", "c.json: /answers/0/evidence"}),
    [](const auto& info) { return info.param.name; });

TEST(Document, RefusesWhatIsNoDocument) {
  for (const std::string_view text : {"[]", "null", "{}", "7", R"({"schema": 1})"}) {
    const auto result = read_document(text, "capture", "c.json");
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, "document-schema");
  }
}

TEST(Document, ALongStringEndsNoValidation) {
  std::string text(kCapture);
  text.replace(text.find("Apple M1"), 8, std::string(1 << 20, '7'));
  EXPECT_TRUE(read_document(text, "capture", "c.json").has_value());
}

TEST(Document, AnUnknownKindIsOurBug) {
  const auto result = validate_document(Json::object(), "no-such-kind", "n");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().fault, Fault::bug);
}

TEST(Document, EverySchemaCanBeUsed) {
  std::size_t schemas = 0;
  for (const EmbeddedFile& file : embedded_tables()) {
    constexpr std::string_view kFolder = "schemas/";
    constexpr std::string_view kEnd = ".schema.json";
    if (!file.name.starts_with(kFolder)) continue;
    const std::size_t length = file.name.size() - kFolder.size() - kEnd.size();
    const std::string_view kind = file.name.substr(kFolder.size(), length);
    const auto result = validate_document(Json::object(), kind, "n");
    ASSERT_FALSE(result.has_value()) << kind << " takes an empty object";
    EXPECT_EQ(result.error().fault, Fault::input) << kind << ": " << result.error().what;
    ++schemas;
  }
  EXPECT_GE(schemas, 13u);
}

}  // namespace
}  // namespace metaldoctor
