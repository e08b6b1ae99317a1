#include "tables/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tables/embedded_file.h"

namespace metaldoctor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Tables embedded() {
  return std::move(*Tables::embedded());
}

std::string embedded_text(std::string_view name) {
  for (const EmbeddedFile& file : embedded_tables()) {
    if (file.name == "data/" + std::string(name)) return std::string(file.bytes);
  }
  return {};
}

std::string edited(std::string text, std::string_view find, std::string_view replace) {
  const std::size_t at = text.find(find);
  EXPECT_NE(at, std::string::npos) << find;
  return at == std::string::npos ? text : text.replace(at, find.size(), replace);
}

TEST(Tables, EveryEmbeddedFileIsValid) {
  const Tables tables = embedded();
  const auto reports = tables.validate();
  EXPECT_GE(reports.size(), 27u);
  for (const auto& report : reports) {
    EXPECT_GT(report.rows, 0u) << report.name;
    for (const auto& problem : report.problems) ADD_FAILURE() << problem.where << problem.what;
  }
}

TEST(Tables, FindsChipsByAnyName) {
  const Tables tables = embedded();
  for (const std::string_view name :
       {"M1 Ultra", "m1 ultra", "Apple M1 Ultra", "Apple M1 Ultra (Virtual)", "m1ultra",
        "apple m1  ultra (virtual)", "M1 Ultra "}) {
    ASSERT_NE(tables.chip(name), nullptr) << name;
    EXPECT_EQ(tables.chip(name)->name, "M1 Ultra");
  }
  EXPECT_EQ(tables.chip("Apple M1 (Virtual)")->name, "M1");
  EXPECT_EQ(tables.chip("Apple A18 Pro (Virtual)")->family, "Apple9");
  for (const std::string_view name : {"", "M", "M99", "Apple Paravirtual device", "Apple",
                                      "Apple (Virtual)", " ", "Intel(R) Core(TM) i7"}) {
    EXPECT_EQ(tables.chip(name), nullptr) << name;
  }
}

TEST(Tables, ResolvesQueriesAndTheirAliases) {
  const Tables tables = embedded();
  for (const std::string_view name : {"areBarycentricCoordsSupported", "barycentricCoordsSupported",
                                      "isBarycentricCoordsSupported"}) {
    ASSERT_NE(tables.query(name), nullptr) << name;
    EXPECT_EQ(tables.query(name)->selector, "areBarycentricCoordsSupported");
  }
  EXPECT_EQ(tables.query("lowPower")->selector, "isLowPower");
  EXPECT_EQ(tables.query("supportsFamily")->selector, "supportsFamily:");
  EXPECT_EQ(tables.query("supportsfamily:"), nullptr);

  const auto key = tables.canonical({"supportsFamily", {1007}});
  EXPECT_EQ(key, (QueryKey{"supportsFamily:", {1007}}));
  EXPECT_EQ(tables.canonical({"architecture.name", {}})->query, "architecture.name");
  for (const QueryKey& bad : {QueryKey{"supportsFamily:", {}}, QueryKey{"supportsFamily:", {1, 2}},
                              QueryKey{"maxThreadgroupMemoryLength", {1}},
                              QueryKey{"noSuchQuestion", {}}, QueryKey{"", {}}}) {
    const auto refused = tables.canonical(bad);
    ASSERT_FALSE(refused.has_value()) << to_string(bad);
    EXPECT_EQ(refused.error().fault, Fault::usage);
  }
}

TEST(Tables, LooksUpRowsById) {
  const Tables tables = embedded();
  EXPECT_EQ(tables.family(1007)->short_name, "Apple7");
  EXPECT_EQ(tables.family("Metal3")->value, 5001);
  EXPECT_EQ(tables.family(1012), nullptr);
  EXPECT_EQ(tables.feature_set(10005)->family, "Mac2");
  EXPECT_EQ(tables.feature("simd_scoped_matrix_multiply_operations")->apple, "Apple7");
  EXPECT_EQ(tables.limit("threadgroup_memory_total")->query, "maxThreadgroupMemoryLength");
  EXPECT_EQ(tables.hazard("metal3-residency-in-guest")->scope, Hazard::Scope::process);
  EXPECT_EQ(tables.verdict("healthy")->is_word, true);
  EXPECT_EQ(tables.verdict("OK")->is_word, false);
  EXPECT_EQ(tables.hazard("none"), nullptr);
}

TEST(Tables, FindsAppsByIdAndAlias) {
  const Tables tables = embedded();
  for (const std::string_view name : {"ggml-metal", "llama.cpp", "whisper.cpp", "ollama-runner"}) {
    ASSERT_NE(tables.app(name), nullptr) << name;
    EXPECT_EQ(tables.app(name)->id, "ggml-metal");
  }
  EXPECT_EQ(tables.app("llama.cpp"), tables.app("ggml-metal"));
  EXPECT_EQ(tables.app("b10167"), nullptr) << "a release is not an app";
  EXPECT_EQ(tables.app("G8"), nullptr);
  EXPECT_EQ(tables.app(""), nullptr);
  EXPECT_EQ(tables.apps().size(), 17u);
  EXPECT_EQ(tables.app("mlx"), tables.app("libmlx"));
}

TEST(Tables, GivesTheCitationOfASource) {
  const Tables tables = embedded();
  EXPECT_THAT(std::string(tables.source("fst2025")), HasSubstr("Metal Feature Set Tables"));
  EXPECT_THAT(std::string(tables.source("P17")), HasSubstr("residency set"));
  EXPECT_THAT(std::string(tables.source("R13")), HasSubstr("runner-images"));
  EXPECT_EQ(tables.source("ml-explore/mlx PR 1537"), "ml-explore/mlx PR 1537");
  EXPECT_EQ(tables.source("nowhere"), "nowhere");
}

TEST(Tables, BuiltInCapturesAreValidDocuments) {
  const Tables tables = embedded();
  EXPECT_THAT(tables.capture_names(), testing::ElementsAre("cua-2026-08-stock", "paravirtual"));
  for (const std::string_view name : tables.capture_names()) {
    const auto capture = read_document(*tables.capture_text(name), "capture", name);
    ASSERT_TRUE(capture.has_value()) << capture.error().where << capture.error().what;
    for (const Json& answer : capture->at("answers")) {
      const QueryKey key{answer.at("query"), answer.at("arguments")};
      const bool known_family = key.query != "supportsFamily:" ||
                                tables.family(key.arguments.front()) != nullptr ||
                                !answer.at("answer").get<bool>();
      EXPECT_EQ(tables.canonical(key), key);
      EXPECT_TRUE(known_family) << to_string(key);
    }
  }
  EXPECT_EQ(tables.capture_text("none"), std::nullopt);
}

TEST(TableOverrides, ReplaceOneFile) {
  const std::string text = edited(embedded_text("chips.json"), "\"M1 Ultra\"", "\"M1 Hyper\"");
  const auto tables = Tables::with_overrides({{"chips.json", text}}, "mine");
  ASSERT_TRUE(tables.has_value()) << tables.error().where << tables.error().what;
  EXPECT_NE(tables->chip("M1 Hyper"), nullptr);
  EXPECT_EQ(tables->family(1007)->short_name, "Apple7");
}

TEST(TableOverrides, AddAnApp) {
  const std::string text =
      edited(embedded_text("apps/skia.json"), "\"id\": \"skia\"", "\"id\": \"mine\"");
  const auto tables = Tables::with_overrides({{"apps/mine.json", text}}, "dir");
  ASSERT_TRUE(tables.has_value()) << tables.error().where << tables.error().what;
  EXPECT_EQ(tables->apps().size(), 18u);
  EXPECT_NE(tables->app("mine"), nullptr);
}

TEST(TableOverrides, NothingToOverrideIsTheEmbeddedSet) {
  const auto tables = Tables::with_overrides({}, "dir");
  ASSERT_TRUE(tables.has_value());
  EXPECT_EQ(tables->edition(), embedded().edition());
}

struct Broken {
  std::string name, file, find, replace, code, where;
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.file;
}

class BrokenOverride : public testing::TestWithParam<Broken> {};

TEST_P(BrokenOverride, IsRefusedWithFileAndPointer) {
  const Broken& broken = GetParam();
  const std::string text = edited(embedded_text(broken.file), broken.find, broken.replace);
  const auto tables = Tables::with_overrides({{broken.file, text}}, "mine");
  ASSERT_FALSE(tables.has_value());
  EXPECT_EQ(tables.error().fault, Fault::input);
  EXPECT_EQ(tables.error().code, broken.code) << tables.error().what;
  EXPECT_THAT(tables.error().where, testing::StartsWith(broken.where));
}

INSTANTIATE_TEST_SUITE_P(
    Tables, BrokenOverride,
    testing::Values(
        Broken{"not_json", "chips.json", "{", "[", "json-syntax", "mine/chips.json: offset 0x"},
        Broken{"other_schema", "chips.json", "table.chips/1", "table.limits/1", "document-schema",
               "mine/chips.json: /schema"},
        Broken{"unknown_field", "chips.json", "\"mac\"", "\"apple\"", "document-invalid",
               "mine/chips.json: /rows/0"},
        Broken{"no_evidence", "families.json", "\"evidence\": \"documented\",", "",
               "document-invalid", "mine/families.json: /rows/0"},
        Broken{"no_source", "families.json", "[\"sdk26.0\", \"sdk27\", \"objc2\"]", "[]",
               "document-invalid", "mine/families.json: /rows/0/sources"},
        Broken{"dangling_source", "families.json", "[\"sdk26.0\", \"sdk27\", \"objc2\"]",
               "[\"sdk99\"]", "table-reference", "mine/families.json: /rows/0/sources"},
        Broken{"no_such_family", "chips.json", "\"family\": \"Apple1\"", "\"family\": \"Apple0\"",
               "table-reference", "mine/chips.json: /rows/0/family"},
        Broken{"not_closed", "families.json", "[\"Apple1\", \"Apple2\", \"Common1\", \"Common2\"]",
               "[\"Apple2\", \"Common1\", \"Common2\"]", "table-not-closed",
               "mine/families.json: /rows/2/implies"},
        Broken{"twice", "verdicts.json", "\"id\": \"mismatch\"", "\"id\": \"healthy\"",
               "table-duplicate", "mine/verdicts.json: /rows/1/id"},
        Broken{"wire_twice", "queries.json", "\"wire\": 2,", "\"wire\": 1,", "table-duplicate",
               "mine/queries.json: /rows/1/wire"},
        Broken{"wire_of_text", "queries.json", "\"type\": \"boolean\"", "\"type\": \"text\"",
               "table-type", "mine/queries.json: /rows/0/wire"},
        Broken{"version", "families.json", "\"min_macos\": \"10.15\"",
               "\"min_macos\": \"Catalina\"", "table-version",
               "mine/families.json: /rows/0/min_macos"},
        Broken{"hazard_query", "hazards.json", "\"query\": \"supportsFamily:\"",
               "\"query\": \"supportsFamilies:\"", "table-reference",
               "mine/hazards.json: /rows/0/answers"},
        Broken{"hazard_app", "hazards.json", "[\"moltenvk\", \"slang-rhi\", \"godot\"]",
               "[\"molten\"]", "table-reference", "mine/hazards.json: /rows/"},
        Broken{"identity_overridden", "hazards.json", "\"query\": \"supportsFamily:\"",
               "\"query\": \"name\"", "table-reference", "mine/hazards.json: /rows/0/answers"},
        Broken{"predicate", "apps/skia.json", "family(1007)", "family(1007", "predicate-syntax",
               "mine/apps/skia.json: "},
        Broken{"predicate_family", "apps/skia.json", "family(1007)", "family(1107)",
               "table-reference", "mine/apps/skia.json: /rows/0/rules/0/predicate"},
        Broken{"marker_range", "apps/slang-rhi.json", "\"from\": \"pr713\"", "\"from\": \"pr714\"",
               "table-reference", "mine/apps/slang-rhi.json: /markers/0/from"},
        Broken{"app_id", "apps/skia.json", "\"id\": \"skia\"", "\"id\": \"sky\"", "table-reference",
               "mine/apps/skia.json: /id"},
        Broken{"range_id", "apps/skia.json", "\"id\": \"2022\"", "\"id\": \"20 22\"", "table-id",
               "mine/apps/skia.json: /rows/0/id"},
        Broken{"include_range", "apps/ollama.json", "ggml-metal@G5", "ggml-metal@G55",
               "table-reference", "mine/apps/ollama.json: /rows/2/includes"},
        Broken{"include_app", "apps/ollama.json", "ggml-metal@G5", "ggml@G5", "table-reference",
               "mine/apps/ollama.json: /rows/2/includes"},
        Broken{"release_range", "apps/mlx.json", "{\"range\": \"0.19.1\"", "{\"range\": \"0.19.0\"",
               "table-reference", "mine/apps/mlx.json: /releases/0/spans/1"},
        Broken{"release_order", "apps/mlx.json", "\"to\": \"0.22.0\"", "\"to\": \"0.23.0\"",
               "table-release", "mine/apps/mlx.json: /releases/0/spans/3"},
        Broken{"release_number", "apps/mlx.json", "\"to\": \"0.22.0\"", "\"to\": \"0.22.x\"",
               "table-release", "mine/apps/mlx.json: /releases/0/spans/2"},
        Broken{"release_program", "apps/mlx.json", "[\"mlx\", \"libmlx\"]", "[\"mlx3\"]",
               "table-reference", "mine/apps/mlx.json: /releases/0/programs"},
        Broken{"hazard_argument", "hazards.json", "\"argument\": 5001", "\"argument\": -1",
               "table-reference", "mine/hazards.json: /rows/0/answers"},
        Broken{"hazard_os", "hazards.json", "{\"from\": \"15.0\"}",
               "{\"from\": \"26.0\", \"to\": \"15.0\"}", "table-version",
               "mine/hazards.json: /rows/"},
        Broken{"paravirtual_type", "paravirtual.json", "\"answer\": true", "\"answer\": \"x\"",
               "table-type", "mine/paravirtual.json: /rows/"},
        Broken{"limit_word", "limits.json", "\"no limit\"", "\"lots\"", "table-type",
               "mine/limits.json: /rows/"},
        Broken{"unknown_without_evidence", "paravirtual.json", "\"answer\": 32768",
               "\"answer\": null", "table-evidence", "mine/paravirtual.json: /rows/"}),
    [](const auto& info) { return info.param.name; });

TEST(TableOverrides, RefuseAFileThatIsNoTable) {
  const auto tables = Tables::with_overrides({{"chip.json", "{}"}}, "mine");
  ASSERT_FALSE(tables.has_value());
  EXPECT_EQ(tables.error().code, "table-unknown-file");
  EXPECT_EQ(tables.error().where, "mine/chip.json");
}

TEST(TableOverrides, AReferenceThatAnOverrideBreaksElsewhereIsFound) {
  const std::string text =
      edited(embedded_text("queries.json"), "\"supportsRaytracing\"", "\"supportsRayTracing\"");
  const auto tables = Tables::with_overrides({{"queries.json", text}}, "mine");
  ASSERT_FALSE(tables.has_value());
  EXPECT_EQ(tables.error().code, "table-reference");
  EXPECT_EQ(tables.error().fault, Fault::input);
  EXPECT_THAT(tables.error().where, HasSubstr("mine/queries.json"));
}

TEST(TableOverrides, FewerRowsThanOthersNeedNameTheOverride) {
  for (const std::string_view name :
       {"families.json", "queries.json", "chips.json", "features.json", "limits.json",
        "feature-sets.json", "paravirtual.json", "verdicts.json", "log-grammars.json",
        "hazards.json"}) {
    for (const std::size_t rows : {std::size_t{0}, std::size_t{3}}) {
      auto json = *parse_json(embedded_text(name), name);
      while (json.at("rows").size() > rows) json.at("rows").erase(json.at("rows").size() - 1);
      const auto tables = Tables::with_overrides({{std::string(name), json.dump()}}, "mine");
      if (tables.has_value()) {
        EXPECT_GT(rows, 0u) << name;
        continue;
      }
      EXPECT_EQ(tables.error().fault, Fault::input) << name;
      EXPECT_THAT(tables.error().where, HasSubstr("mine/" + std::string(name)));
    }
  }
}

TEST(TableOverrides, AQuestionWithoutItsWireNumberNamesTheOverride) {
  const std::string text = edited(embedded_text("queries.json"), "\"wire\": 1,", "");
  const auto tables = Tables::with_overrides({{"queries.json", text}}, "mine");
  ASSERT_FALSE(tables.has_value());
  EXPECT_EQ(tables.error().fault, Fault::input);
  EXPECT_THAT(tables.error().where, HasSubstr("mine/queries.json"));
}

}  // namespace
}  // namespace metaldoctor
