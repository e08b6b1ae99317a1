// The JSON forms: what a request may say, and that results fit their schema.
#include <gmock/gmock.h>

#include "harness.h"

namespace metaldoctor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view whole = R"({
  "schema": "metaldoctor.sim-request/1",
  "images": ["libx.dylib", {"path": "liby.dylib", "bytes": "00ff7e"}],
  "arch": "x86_64",
  "metal": "never",
  "devices": [{"capture": "paravirtual", "driver": "BronzeMtlDevice", "wrapper": "capture"}],
  "system": [{"class": "_MTLDevice", "selector": "name"},
             {"class": "_MTLDevice", "selector": "supportsFamily:", "types": "v16@0:8"}],
  "steps": [
    {"do": "initializers"},
    {"do": "call", "symbol": "_f", "image": "libx.dylib",
     "arguments": [-1, "text", {"step": 0}, {"buffer": 64}]},
    {"do": "ask", "queries": [{"query": "supportsFamily:", "arguments": [1007]}]},
    {"do": "ask", "queries": "known"},
    {"do": "main", "argv": ["a", "b"]}
  ],
  "runs": [
    {"id": "stock"},
    {"id": "other", "environment": {"A": "b"},
     "answers": [{"query": "supportsFamily:", "arguments": [1006], "answer": true}]}
  ],
  "files": {"/etc/x": "text"},
  "budget": {"instructions": 5, "memory": 4096, "call_depth": 2}
})";

TEST(SimRequestJson, IsReadWhole) {
  const auto document = read_sim_request(tables(), whole, "request.json");
  ASSERT_TRUE(document) << document.error().what;
  const SimRequest& request = document->request;
  EXPECT_THAT(document->image_files, ElementsAre("libx.dylib", "liby.dylib"));
  EXPECT_TRUE(request.images[0].bytes.empty()) << "to be read from the file";
  EXPECT_THAT(request.images[1].bytes, ElementsAre(0x00, 0xff, 0x7e));
  EXPECT_FALSE(request.system.at(0).types);
  EXPECT_EQ(request.system.at(1).types, "v16@0:8");
  EXPECT_EQ(request.arch, "x86_64");
  EXPECT_EQ(request.metal, SimMetal::never);
  EXPECT_EQ(request.devices.at(0).driver, "BronzeMtlDevice");
  EXPECT_EQ(request.devices.at(0).wrapper, SimDevice::Wrapper::capture);
  ASSERT_EQ(request.steps.size(), 5u);
  const auto& arguments = request.steps[1].arguments;
  ASSERT_EQ(arguments.size(), 4u);
  EXPECT_EQ(std::get<std::int64_t>(arguments[0]), -1);
  EXPECT_EQ(std::get<std::string>(arguments[1]), "text");
  EXPECT_EQ(std::get<SimStepResult>(arguments[2]).step, 0u);
  EXPECT_EQ(std::get<SimBuffer>(arguments[3]).size, 64u);
  EXPECT_EQ(to_string(request.steps[2].queries.at(0)), "supportsFamily:1007");
  EXPECT_GT(request.steps[3].queries.size(), 50u);
  EXPECT_THAT(request.steps[4].argv, ElementsAre("a", "b"));
  EXPECT_EQ(request.runs.at(1).answers.at(0), family(1006, true));
  EXPECT_EQ(request.budget.call_depth, 2u);
}

struct Bad {
  const char* from;
  const char* to;
  const char* message;
};

constexpr Bad bad_requests[] = {
    {"sim-request/1", "sim-request/2", "schema"},
    {R"("metal": "never")", R"("metal": "sometimes")", "/metal"},
    {R"("symbol": "_f", )", "", "/steps/1"},
    {R"("capture": "paravirtual")", R"("capture": "nobody")", "/devices/0/capture"},
    {R"({"id": "stock"})", R"({"id": "stock", "more": 1})", "/runs/0"},
    {"00ff7e", "00ff7", "/images/1/bytes"},
    {"00ff7e", "00FF7E", "/images/1/bytes"},
    {"supportsFamily:\", \"arguments\": [1006]", "supportsFamily:\"", "/runs/1/answers/0"},
    {"supportsFamily:\", \"arguments\": [1007]", "nobodyAsks\"", "/steps/2/queries/0"},
};

TEST(SimRequestJson, WhatIsWrongIsNamed) {
  for (const Bad& bad : bad_requests) {
    std::string text(whole);
    const auto at = text.find(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from;
    text.replace(at, std::string_view(bad.from).size(), bad.to);
    const auto document = read_sim_request(tables(), text, "request.json");
    ASSERT_FALSE(document) << bad.to;
    EXPECT_THAT(document.error().where + document.error().what, HasSubstr(bad.message)) << bad.to;
  }
}

TEST(SimRequestJson, RunsWithoutSenseAreRefused) {
  SimRequest asked = request("arm64", "strings");
  asked.runs.push_back(asked.runs[0]);
  EXPECT_THAT(simulate(tables(), asked, {}).error().what, HasSubstr("two runs are called"));
  asked.runs.clear();
  EXPECT_EQ(simulate(tables(), asked, {}).error().fault, Fault::usage);
  asked = request("arm64e-of-another-kind", "strings");
  EXPECT_EQ(simulate(tables(), asked, {}).error().code, "simulator-image");
  asked = request("arm64", "nobody_has_this");
  EXPECT_THAT(outcome(simulated(asked).runs[0]), HasSubstr("no image has the symbol"));
}

TEST(SimResultJson, FitsItsSchema) {
  for (const char* function : {"strings", "pointer_noise", "aborts", "leaves", "unknown_import"}) {
    SimRequest asked = request("arm64", function);
    asked.runs.push_back({"other", {family(1006, true)}, {}});
    const Json json = to_json(simulated(asked));
    const auto valid = validate_document(Json::parse(json.dump()), "sim-result", function);
    EXPECT_TRUE(valid) << (valid ? "" : valid.error().where + ": " + valid.error().what);
  }
}

TEST(SimResultJson, BytesThatAreNoTextSurvive) {
  SimResult result;
  Trace trace;
  trace.id = "one";
  trace.log = {{"stderr", "bad \xff\xc3 good \xc3\xa9", ""}};
  result.runs = {trace};
  EXPECT_THAT(to_json(result).dump(), HasSubstr("bad \\\\xff\\\\xc3 good \xc3\xa9"));
}

}  // namespace
}  // namespace metaldoctor::testing
