// llama.cpp's Metal backend with an emitted library in front of it: what the overridden answers
// change when they come from the library is what they change when the device itself gives them.
#include <gmock/gmock.h>

#include <algorithm>

#include "shim/emit.h"
#include "tests/corpus/cache.h"
#include "tests/unit/simulator/harness.h"

namespace metaldoctor::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Capture stock_guest() {
  Capture stock;
  stock.name = "Apple Paravirtual device";
  stock.system.is_virtual = true;
  const auto add = [&](Answer answer) {
    stock.answers.push_back({std::move(answer), Evidence::measured, {}});
  };
  for (const std::int64_t value : {1001, 1002, 1003, 1004, 1005, 2002, 3001, 3002, 3003})
    add(family(value, true));
  add({{"maxThreadgroupMemoryLength", {}}, std::int64_t{32768}});
  add({{"hasUnifiedMemory", {}}, true});
  add({{"maxBufferLength", {}}, std::int64_t{8} << 30});
  add({{"recommendedMaxWorkingSetSize", {}}, std::int64_t{4} << 30});
  return stock;
}

class Override : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto metal = corpus_cache() / "ggml-3.21.1", base = corpus_cache() / "ggml-base-3.21.1";
    if (!std::filesystem::exists(metal) || !std::filesystem::exists(base))
      GTEST_SKIP() << "the corpus is not in " << corpus_cache() << ": run tests/corpus/fetch.py";
    request_.images = {{"libggml-metal.so", file_bytes(metal)},
                       {"libggml-base.dylib", file_bytes(base)}};
    request_.arch = "arm64";
    request_.devices = {{stock_guest(), "", {}}};
    SimStep start, init;
    start.kind = SimStep::Kind::initializers;
    init.symbol = "_ggml_metal_device_init";
    init.arguments = {std::int64_t{0}, std::int64_t{1}};
    request_.steps = {start, init};
    request_.runs = {{"run", {}, {}}};
  }

  /// Behind the library of a profile with these families; without one if there are none.
  Trace run(const std::vector<std::int64_t>& families) {
    SimRequest request = request_;
    Profile profile;
    profile.bound.chip = "M1 Ultra";
    for (const std::int64_t value : families)
      profile.changes.push_back({family(value, true), "", {}, {}});
    const auto emitted = emit(tables(), profile, {});
    EXPECT_TRUE(emitted) << emitted.error().what;
    // dyld runs inserted libraries first.
    if (!families.empty())
      request.images.insert(request.images.begin(),
                            {"/opt/libmetaldoctor-shim.dylib", emitted->bytes});
    return run(request);
  }
  /// With the device itself answering so.
  Trace plain(const std::vector<std::int64_t>& families) {
    SimRequest request = request_;
    for (const std::int64_t value : families)
      request.runs[0].answers.push_back(family(value, true));
    return run(request);
  }
  static Trace run(const SimRequest& request) {
    Trace trace = simulated(request).runs[0];
    EXPECT_FALSE(trace.stop) << outcome(trace);
    // What the library writes into its own memory is not the program's.
    std::erase_if(trace.writes, [](const SimWrite& write) {
      return write.object.find("libmetaldoctor") != std::string::npos;
    });
    return trace;
  }
  static std::vector<std::string> changes(const SimDifference& difference) {
    std::vector<std::string> all;
    for (const auto& byte : difference.bytes)
      all.push_back(byte.where + " " + byte.before + " " + byte.after);
    for (const auto& line : difference.log) all.push_back(line.before + " -> " + line.after);
    return all;
  }

  SimRequest request_;
};

TEST_F(Override, TheLibraryDoesWhatThePlainAnswersDo) {
  const Trace stock = run(std::vector<std::int64_t>{});
  const auto injected = changes(compare_traces(stock, run({1006, 1007})));
  EXPECT_EQ(injected, changes(compare_traces(stock, plain({1006, 1007}))));
  EXPECT_EQ(injected.size(), 5u + 4u) << "five bytes and four lines";
  EXPECT_THAT(injected, Contains(HasSubstr("has bfloat            = true")));
}

// Apple7 alone: G8 asks 1006 for bfloat, and a profile without it does not open that path.
TEST_F(Override, WithoutApple6NoBfloat) {
  const Trace stock = run(std::vector<std::int64_t>{});
  const auto injected = changes(compare_traces(stock, run({1007})));
  EXPECT_THAT(injected, Contains(HasSubstr("simdgroup reduction   = true")));
  EXPECT_THAT(injected, Not(Contains(HasSubstr("bfloat"))));
  EXPECT_EQ(injected, changes(compare_traces(stock, plain({1007}))));
}

}  // namespace
}  // namespace metaldoctor::testing
