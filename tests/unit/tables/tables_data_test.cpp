// Cells of the tables against their sources, and what the rules of programs give on devices that
// were worked out independently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tables/document.h"
#include "tables/tables.h"

namespace metaldoctor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class TablesData : public testing::Test {
 protected:
  Tables tables_ = std::move(*Tables::embedded());
};

TEST_F(TablesData, Edition) {
  EXPECT_EQ(tables_.edition(), "2026-12-01");
  EXPECT_EQ(tables_.newest_macos(), (OsVersion{27, 0, 0}));
}

TEST_F(TablesData, Families) {
  EXPECT_EQ(tables_.families().size(), 20u);
  EXPECT_THAT(tables_.family("Apple1")->implies, ElementsAre("Common1"));
  EXPECT_THAT(tables_.family("Apple7")->implies,
              ElementsAre("Apple1", "Apple2", "Apple3", "Apple4", "Apple5", "Apple6", "Common1",
                          "Common2", "Common3"));
  EXPECT_THAT(tables_.family("Apple6")->implies, Not(Contains("Metal3")));
  EXPECT_THAT(tables_.family("Metal4")->implies, ElementsAre("Metal3"));
  EXPECT_THAT(tables_.family("Metal3")->implies, IsEmpty());
  EXPECT_THAT(tables_.family("Mac1")->implies, ElementsAre("Common1", "Common2"));
  EXPECT_EQ(tables_.family("Metal3")->min_macos, (OsVersion{13, 0, 0}));
  EXPECT_EQ(tables_.family("Metal4")->min_macos, (OsVersion{26, 0, 0}));
  EXPECT_EQ(tables_.family("Apple11")->value, 1011);
  EXPECT_EQ(tables_.family("MacCatalyst2")->value, 4002);
}

TEST_F(TablesData, Chips) {
  struct Row {
    std::string_view name, family;
    bool mac;
    std::string_view model, architecture;
  };
  constexpr Row rows[] = {
      {"M1", "Apple7", true, "Macmini9,1", "applegpu_g13g"},
      {"M1 Ultra", "Apple7", true, "Mac13,2", "applegpu_g13d"},
      {"M2 Ultra", "Apple8", true, "Mac14,14", "applegpu_g14d"},
      {"M3 Pro", "Apple9", true, "Mac15,6", "applegpu_g15s"},
      {"M4", "Apple9", true, "Mac16,10", "applegpu_g16g"},
      {"M5", "Apple10", true, "Mac17,2", "applegpu_g17g"},
      {"M6", "Apple11", true, "Mac18,5", "applegpu_g18g"},
      {"A18 Pro", "Apple9", true, "Mac17,5", "applegpu_g17p"},
      {"A13 Bionic", "Apple6", false, "", ""},
      {"A19 Pro", "Apple10", false, "", ""},
  };
  for (const Row& row : rows) {
    const Chip* chip = tables_.chip(row.name);
    ASSERT_NE(chip, nullptr) << row.name;
    EXPECT_EQ(chip->family, row.family) << row.name;
    EXPECT_EQ(chip->mac, row.mac) << row.name;
    EXPECT_EQ(chip->architecture, row.architecture) << row.name;
    if (!row.model.empty()) EXPECT_THAT(chip->hw_models, Contains(row.model));
  }
  EXPECT_EQ(tables_.chip("M5 Ultra")->family, std::nullopt);
}

TEST_F(TablesData, Features) {
  struct Row {
    std::string_view id, metal, apple, mac;
  };
  constexpr Row rows[] = {
      {"simd_scoped_permute_operations", "Metal3", "Apple6", "Mac2"},
      {"simd_scoped_reduction_operations", "Metal3", "Apple7", "Mac2"},
      {"simd_scoped_matrix_multiply_operations", "Metal4", "Apple7", ""},
      {"mtldatatype_bfloat_scalar_and_vector", "Metal3", "Apple6", "Mac2"},
      {"64_bit_atomics", "", "Apple9", ""},
      {"residency_sets", "Metal4", "Apple6", ""},
      {"raster_order_groups", "Metal3", "Apple4", "varies"},
      {"tensors", "Metal4", "Apple7", ""},
      {"mesh_shading", "Metal3", "Apple7", "Mac2"},
      {"bc_pixel_formats", "", "Apple9", "Mac2"},
      {"msaa_8x", "", "Apple10", ""},
  };
  EXPECT_EQ(tables_.features().size(), 142u);
  for (const Row& row : rows) {
    const Feature* feature = tables_.feature(row.id);
    ASSERT_NE(feature, nullptr) << row.id;
    EXPECT_EQ(feature->metal.value_or(""), row.metal) << row.id;
    EXPECT_EQ(feature->apple.value_or(""), row.apple) << row.id;
    EXPECT_EQ(feature->mac.value_or(""), row.mac) << row.id;
  }
  EXPECT_EQ(tables_.feature("residency_sets")->min_macos, (OsVersion{15, 0, 0}));
}

TEST_F(TablesData, Limits) {
  struct Row {
    std::string_view id, family;
    Value value;
  };
  const auto number = [](std::int64_t value) { return Value(value); };
  const Row rows[] = {
      {"threadgroup_memory_total", "Apple2", number(16352)},
      {"threadgroup_memory_total", "Apple3", number(16384)},
      {"threadgroup_memory_total", "Apple7", number(32768)},
      {"threadgroup_memory_total", "Apple10", number(32768)},
      {"threads_per_threadgroup", "Apple3", number(512)},
      {"argbuf_samplers", "Apple6", number(128)},
      {"argbuf_samplers", "Apple7", number(1024)},
      {"argbuf_samplers", "Apple9", number(500000)},
      {"mesh_grid_threadgroups", "Apple9", number(1048575)},
      {"texture_2d_size", "Apple10", number(32768)},
      {"imageblock_explicit", "Mac2", Value(std::string("not available"))},
      {"constant_address_space", "Apple7", Value(std::string("no limit"))},
      {"vertex_amplification_count", "Mac2", Value(std::string("varies"))},
      {"vertex_attributes", "Apple10", Value()},
  };
  for (const Row& row : rows) {
    const Limit* limit = tables_.limit(row.id);
    ASSERT_NE(limit, nullptr) << row.id;
    EXPECT_EQ(limit->values.at(std::string(row.family)), row.value) << row.id << row.family;
  }
}

TEST_F(TablesData, Queries) {
  // The wire numbers are in profiles and journals that others keep: they never change.
  constexpr std::pair<std::string_view, int> kWires[] = {
      {"supportsFamily:", 1},
      {"supportsFeatureSet:", 2},
      {"maxThreadgroupMemoryLength", 3},
      {"hasUnifiedMemory", 4},
      {"supportsRaytracing", 14},
      {"argumentBuffersSupport", 22},
      {"supportsCounterSampling:", 32},
      {"maximumConcurrentCompilationTaskCount", 36},
  };
  for (const auto& [selector, wire] : kWires) EXPECT_EQ(tables_.query(selector)->wire, wire);
  for (const std::string_view identity :
       {"name", "architecture.name", "registryID", "currentAllocatedSize", "isLowPower", "location",
        "maxThreadsPerThreadgroup", "counterSets", "newResidencySetWithDescriptor:error:"}) {
    EXPECT_FALSE(tables_.query(identity)->overridable) << identity;
  }
  EXPECT_FALSE(tables_.query("newArgumentEncoderWithArguments:")->safe_to_ask);
  EXPECT_TRUE(tables_.query("supportsFamily:")->safe_to_ask);
  EXPECT_EQ(tables_.query("supportsFamily:")->encoding_arm64, "B24@0:8q16");
  EXPECT_EQ(tables_.query("maxThreadgroupMemoryLength")->limit, "threadgroup_memory_total");
  EXPECT_EQ(tables_.query("supportsRaytracing")->feature, "ray_tracing_in_compute_pipelines");
  EXPECT_EQ(tables_.query("supportsPlacementSparse")->min_macos, (OsVersion{26, 4, 0}));
}

TEST_F(TablesData, ParavirtualDevice) {
  const auto value = [&](std::string_view question) {
    const QueryKey key = *parse_query_key(question);
    for (const ParavirtualAnswer& row : tables_.paravirtual()) {
      if (row.answer.key == key) {
        return to_string(row.answer.value) + ' ' + std::string(to_string(row.provenance.evidence));
      }
    }
    return std::string("no row");
  };
  EXPECT_EQ(value("supportsFamily:1005"), "yes measured");
  EXPECT_EQ(value("supportsFamily:1006"), "no measured");
  EXPECT_EQ(value("supportsFamily:2002"), "yes measured");
  EXPECT_EQ(value("supportsFamily:5001"), "no measured");
  EXPECT_EQ(value("maxThreadgroupMemoryLength"), "32768 measured");
  EXPECT_EQ(value("argumentBuffersSupport"), "0 inferred");
  EXPECT_EQ(value("supportsRaytracing"), "no measured");
  EXPECT_EQ(value("readWriteTextureSupport"), "unknown unknown");
  EXPECT_EQ(tables_.observations().size(), 18u);
}

TEST_F(TablesData, HazardsThatMustBeThere) {
  const Hazard* apple6 = tables_.hazard("apple6-residency-in-guest");
  ASSERT_NE(apple6, nullptr);
  EXPECT_THAT(apple6->programs, ElementsAre("moltenvk", "slang-rhi", "godot"));
  EXPECT_THAT(apple6->or_gate_sends, ElementsAre("newResidencySetWithDescriptor:error:"));
  EXPECT_EQ(apple6->os_from, (OsVersion{15, 0, 0}));
  for (const std::string_view id :
       {"metal3-residency-in-guest", "metal4-in-guest", "threadgroup-memory-above-table",
        "above-host", "family-does-not-exist", "driver-feature-unproven"}) {
    ASSERT_NE(tables_.hazard(id), nullptr) << id;
    EXPECT_EQ(tables_.hazard(id)->scope, Hazard::Scope::process) << id;
  }
}

TEST_F(TablesData, MarkersOfGgmlBoundItsRanges) {
  const App* ggml = tables_.app("ggml-metal");
  const auto bounds = [&](std::string_view text) {
    for (const Marker& marker : ggml->markers) {
      if (marker.match == text) return marker.kind + ' ' + marker.from + ".." + marker.to;
    }
    return std::string("none");
  };
  EXPECT_EQ(bounds("%s: GPU name:   %s (%s)"), "cstring G8..");
  EXPECT_EQ(bounds("%s: has residency sets    = %s"), "cstring G4..G4");
  EXPECT_EQ(bounds("kernel_lightning_indexer"), "msl G8..");
  EXPECT_THAT(ggml->ranges.back().aliases, Contains("b10167"));
  EXPECT_EQ(ggml->ranges.front().id, "G0");
  EXPECT_EQ(ggml->ranges.back().id, "G8");
}

Rule::Side side_of(const Tables& tables, std::string_view app, std::string_view rule) {
  for (const Rule& row : tables.app(app)->ranges.back().rules) {
    if (row.id == rule) return row.side;
  }
  ADD_FAILURE() << app << ' ' << rule;
  return Rule::Side::neutral;
}

TEST_F(TablesData, SidesOfRules) {
  using Side = Rule::Side;
  EXPECT_EQ(side_of(tables_, "ggml-metal", "has_simdgroup_reduction"), Side::gain);
  EXPECT_EQ(side_of(tables_, "ggml-metal", "has_bfloat"), Side::gain);
  EXPECT_EQ(side_of(tables_, "ggml-metal", "tgmem_assert_ok"), Side::neutral);
  EXPECT_EQ(side_of(tables_, "ggml-metal", "supports_gpu_family_apple7"), Side::neutral);
  EXPECT_EQ(side_of(tables_, "mlx", "residency_set_throw"), Side::harm);
  EXPECT_EQ(side_of(tables_, "moltenvk", "residencySets"), Side::harm);
  EXPECT_EQ(side_of(tables_, "moltenvk", "maxComputeSharedMemorySize_gt_32k"), Side::harm);
  EXPECT_EQ(side_of(tables_, "candle", "residency_panic"), Side::harm);
}

/// A device of tests/data/tables/rule-truths.json.
Value value_on(const Json& device, const Atom& atom) {
  if (atom.kind == AtomKind::env) return false;
  if (atom.kind == AtomKind::build) return true;
  if (atom.kind == AtomKind::os) {
    return *parse_os_version(device.at("os").get<std::string>()) >= *parse_os_version(atom.name);
  }
  if (atom.kind == AtomKind::driver) {  // both facts hold on the host, and neither in the guest
    const bool is_fact = atom.name == "rset_ok" || atom.name == "arg_encoder_ok";
    return is_fact && device.at("rset_ok").get<bool>();
  }
  if (atom.key.query == "supportsFamily:") {
    const auto families = device.at("families").get<std::vector<std::int64_t>>();
    return std::find(families.begin(), families.end(), atom.key.arguments.at(0)) != families.end();
  }
  if (atom.key.query == "maxThreadgroupMemoryLength") return device.at("tgmem").get<std::int64_t>();
  if (atom.key.query == "name") return device.at("name").get<std::string>();
  if (atom.key.query == "architecture.name") return device.at("architecture").get<std::string>();
  if (atom.key.query == "hasUnifiedMemory") return device.at("unified").get<bool>();
  if (atom.key.query == "argumentBuffersSupport") {
    return device.at("argument_tier").get<std::int64_t>();
  }
  if (atom.key.query == "location") return std::int64_t{0};
  return false;
}

TEST_F(TablesData, RulesGiveWhatWasWorkedOutIndependently) {
  std::ifstream in(METALDOCTOR_TESTDATA "/tables/rule-truths.json");
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto truths = parse_json(text, "rule-truths.json");
  ASSERT_TRUE(truths.has_value()) << truths.error().what;
  std::size_t rules = 0;
  for (const App& app : tables_.apps()) {
    for (const AppRange& range : app.ranges) {
      for (const Rule& rule : range.rules) {
        if (!rule.included_from.empty()) continue;  // worked out where it is at home
        const std::string id = app.id + '@' + range.id + '/' + rule.id;
        ASSERT_TRUE(truths->at("rules").contains(id)) << id;
        std::size_t column = 0;
        for (const auto& [name, device] : truths->at("profiles").items()) {
          const World world = [&](const Atom& atom) { return value_on(device, atom); };
          const bool expected = truths->at("rules").at(id).at(column++).get<bool>();
          EXPECT_EQ(rule.predicate.evaluate(world), expected ? Truth::yes : Truth::no)
              << id << " on " << name;
        }
        ++rules;
      }
    }
  }
  EXPECT_EQ(rules, truths->at("rules").size());
}

}  // namespace
}  // namespace metaldoctor
