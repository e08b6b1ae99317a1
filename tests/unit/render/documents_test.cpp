// Every JSON document that a command writes is valid against its schema, whatever went in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"
#include "shim/recommend.h"
#include "tools/render/diagnosis.h"
#include "tools/render/explain.h"
#include "tools/render/recommendation.h"

namespace metaldoctor {
namespace {

using testing::HasSubstr;

const Tables& tables() {
  static const Tables tables = *Tables::embedded();
  return tables;
}

Capture built_in(std::string_view name) {
  return *read_capture(tables(), *tables().capture_text(name), name);
}

/// Reads the text back as a stranger would: parsed and validated.
void expect_valid(const Json& document, std::string_view kind) {
  const auto read = read_document(json_text(document), kind, "document");
  ASSERT_TRUE(read) << read.error().where << ": " << read.error().what;
}

TEST(Documents, DiagnosesAreValid) {
  for (const std::string_view name : tables().capture_names()) {
    const Capture capture = built_in(name);
    for (const char* chip : {"", "M1 Ultra", "M3 Pro", "M5"}) {
      DiagnoseOptions options;
      options.host = tables().chip(chip);
      expect_valid(diagnosis_json(capture, diagnose(tables(), capture, options)), "diagnosis");
    }
  }
}

TEST(Documents, RecommendationsOfEveryProgramAreValid) {
  const Capture guest = built_in("paravirtual");
  for (const App& app : tables().apps()) {
    for (const AppRange& range : app.ranges) {
      RecommendOptions options;
      options.diagnose.host = tables().chip("M2");
      const auto result = recommend(tables(), guest, paths_of(app, range), options);
      ASSERT_TRUE(result) << app.id;
      expect_valid(recommendation_json(*result), "recommendation");
      expect_valid(to_json(result->profile), "profile");
    }
  }
}

TEST(Documents, ExplanationsOfEveryHazardAndVerdictAreValid) {
  for (const Hazard& hazard : tables().hazards()) {
    expect_valid(*explain(tables(), hazard.id), "explanation");
  }
  for (const Verdict& verdict : tables().verdicts()) {
    expect_valid(*explain(tables(), verdict.id), "explanation");
  }
}

TEST(Documents, EveryTableListIsValid) {
  const auto list = list_tables(tables(), "");
  ASSERT_TRUE(list);
  for (const Json& row : list->at("rows")) {
    expect_valid(*list_tables(tables(), row.at("id").get<std::string>()), "table-list");
  }
}

TEST(Documents, TheSchemaRefusesWhatIsNotInIt) {
  Json document = *list_tables(tables(), "chips");
  document["surprise"] = 1;
  EXPECT_FALSE(read_document(json_text(document), "table-list", "document"));
}

TEST(TextStyle, WrapsAndScrubs) {
  EXPECT_EQ(printable("a\033[31mb\n"), "a?[31mb ");
  const std::string words(std::size_t{150}, 'x');
  EXPECT_EQ(wrap(words, 4), words);  // a long word stays whole
  EXPECT_EQ(wrap(std::string(60, 'a') + " " + std::string(60, 'b'), 2),
            std::string(60, 'a') + "\n  " + std::string(60, 'b'));
  TextStyle style;
  EXPECT_EQ(style.paint(TextStyle::Ink::bad, "x"), "x");
  style.color = true;
  EXPECT_THAT(style.paint(TextStyle::Ink::bad, "x"), HasSubstr("\033[31m"));
}

}  // namespace
}  // namespace metaldoctor
