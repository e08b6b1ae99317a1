// What an emitted library costs the process that it is injected into, against the aims; see cost.h.
#include <fmt/core.h>

#include "tests/unit/behaviour/cost.h"

int main() {
  using namespace metaldoctor::testing;
  const auto library = emitted(apple7());
  const LibraryCost arm = cost_of(library, "arm64"), intel = cost_of(library, "x86_64");
  struct Row {
    const char* name;
    std::uint64_t LibraryCost::* count;
    const char* aim;
  };
  constexpr Row rows[] = {
      {"constructor, guest instructions", &LibraryCost::constructor, "< 20000"},
      {"question passed on, journal off", &LibraryCost::passed_on, "<= 40"},
      {"question overridden", &LibraryCost::overridden, ""},
      {"question that is in the journal", &LibraryCost::journalled, ""},
      {"imports", &LibraryCost::imports, "<= 24"},
      {"bytes", &LibraryCost::size, "<= 36864"},
  };
  fmt::print("{:<34} {:>10} {:>10} {:>10}\n", "library for Apple6 and Apple7", "arm64", "x86_64",
             "aim");
  for (const Row& row : rows) {
    fmt::print("{:<34} {:>10} {:>10} {:>10}\n", row.name, arm.*row.count, intel.*row.count,
               row.aim);
  }
}
