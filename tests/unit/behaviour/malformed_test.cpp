// 100,000 configurations that are no profile, from a seed, given to the emitted bytes themselves on
// both architectures: in the section and in the environment.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "shim/profile_text/profile_text.h"
#include "tests/unit/behaviour/support.h"
#include "tests/unit/shim_dylib/mangled.h"

namespace metaldoctor::testing {
namespace {

using ::testing::IsEmpty;

constexpr std::size_t kInOneProcess = 10'000;

/// What the library sees of a text: a variable ends at its first NUL.
bool is_malformed(const std::string& text, bool in_section) {
  std::string seen = in_section ? text : text.substr(0, text.find('\0'));
  if (in_section) seen.erase(std::min(seen.size(), seen.find_last_not_of('\0') + 1));
  shim::Overrides read;
  return !seen.starts_with(shim::kTemplateMark) &&
         !shim::parse_overrides(seen.data(), seen.size(), read);
}

/// As the feeder reads them: a count, then texts of 128 bytes each.
constexpr std::size_t kTextSize = 128;
std::string blob_of(const std::vector<std::string>& all) {
  std::string blob(8, '\0');
  const std::uint64_t count = all.size();
  std::memcpy(blob.data(), &count, sizeof count);
  for (std::string text : all) {
    text.resize(kTextSize);
    blob += text;
  }
  return blob;
}

std::string configurations(std::mt19937& random, std::size_t count, bool in_section) {
  std::vector<std::string> all;
  while (all.size() < count) {
    std::string text = shim::mangled(random);
    if (random() % 16 == 0) {
      for (char& c : text) c = static_cast<char>(random());
    }
    if (text.size() < kTextSize && is_malformed(text, in_section)) all.push_back(std::move(text));
  }
  return blob_of(all);
}

/// The library with a __TEXT that the feeder may write into; no other byte differs.
std::vector<std::uint8_t> writable(Bytes library) {
  std::vector<std::uint8_t> out(library.begin(), library.end());
  const auto file = MachOFile::read(library, "library");
  for (const Slice& slice : file->slices()) {
    constexpr std::size_t first_command = 32, init_protection = 60;
    constexpr std::uint8_t all = 7;
    out[slice.offset + first_command + init_protection] = all;
  }
  return out;
}

/// 100,000 in all. Where the section shares a page with code, each write costs a translation.
/// METALDOCTOR_CONFIGURATIONS=100000 tries that many of each kind, in about two minutes.
struct Way {
  const char* arch;
  bool in_section;
  std::size_t configurations;

  std::size_t count() const {
    const char* asked = std::getenv("METALDOCTOR_CONFIGURATIONS");
    return asked ? std::strtoul(asked, nullptr, 10) : configurations;
  }
};
class Malformed : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(, Malformed,
                         ::testing::Values(Way{"arm64", true, 30'000}, Way{"arm64", false, 30'000},
                                           Way{"x86_64", true, 10'000},
                                           Way{"x86_64", false, 30'000}),
                         [](const auto& info) {
                           return std::string(info.param.arch) +
                                  (info.param.in_section ? "_section" : "_variable");
                         });

/// The library, and the feeder that starts it with one configuration after another.
class Fed {
 public:
  explicit Fed(Way way)
      : library_(way.in_section
                     ? writable(emitted(apple7()))
                     : std::vector(embedded_template().begin(), embedded_template().end())),
        feeder_(bytes_of(METALDOCTOR_FEEDER)) {
    request_.images = {{"/libmetaldoctor-shim.dylib", library_}, {"/libfeeder.dylib", feeder_}};
    request_.arch = way.arch;
    request_.metal = SimMetal::start;
    request_.devices = {
        {*read_capture(tables(), *tables().capture_text("paravirtual"), "stock"), "", {}}};
    SimStep feed, ask;
    feed.symbol = "_feed";
    feed.arguments = {std::int64_t{way.in_section}};
    ask.kind = SimStep::Kind::ask;
    for (const std::int64_t value : {1005, 1006, 1007, 1008, 5001}) {
      ask.queries.push_back({"supportsFamily:", {value}});
    }
    request_.steps = {feed, ask};
    request_.runs = {{"all", {}, {}}};
    if (!way.in_section) request_.environment["METALDOCTOR_PROFILE"] = std::string(kTextSize, 'x');
    request_.budget.instructions = 2'000'000'000;
    request_.budget.milliseconds = 600'000;
  }
  Trace run(std::string configurations) {
    request_.files["/configurations"] = std::move(configurations);
    const auto result = simulate(tables(), request_, {});
    EXPECT_TRUE(result) << (result ? "" : result.error().what);
    return result ? result->runs[0] : Trace{};
  }

 private:
  std::vector<std::uint8_t> library_, feeder_;
  SimRequest request_;
};

TEST_P(Malformed, ProfilesLeaveEverythingStock) {
  Fed fed(GetParam());
  std::mt19937 random(20261205);
  for (std::size_t tried = 0; tried < GetParam().count(); tried += kInOneProcess) {
    const Trace trace = fed.run(configurations(random, kInOneProcess, GetParam().in_section));
    ASSERT_FALSE(trace.stop) << trace.stop->kind << " " << trace.stop->text << " "
                             << trace.stop->where;
    EXPECT_EQ(trace.results.at(0), kInOneProcess);
    EXPECT_THAT(trace.overrides, IsEmpty());
    EXPECT_THAT(trace.log, IsEmpty());
    EXPECT_EQ(trace.queries.size(), 5u);
    for (const SimQuery& query : trace.queries) {
      EXPECT_EQ(query.answer, query.key.arguments[0] == 1005) << to_string(query.key);
    }
  }
}

// The feeder does feed: a profile that is none of those above is taken.
TEST_P(Malformed, AProfileThatIsWellFormedIsTaken) {
  const Trace trace = Fed(GetParam()).run(blob_of({"mdp1;all;process;none;1:1001=0;."}));
  ASSERT_FALSE(trace.stop);
  ASSERT_EQ(trace.overrides.size(), 2u);
  EXPECT_EQ(trace.overrides[0].selector, "supportsFamily:");
  EXPECT_EQ(trace.overrides[1].selector, "initGPUFamilySupport");
}

}  // namespace
}  // namespace metaldoctor::testing
