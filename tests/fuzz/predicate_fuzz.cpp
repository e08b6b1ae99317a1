// What parses must print to something that parses back to the same tree, in both forms.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tables/predicate.h"

using namespace metaldoctor;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto predicate = Predicate::parse(text);
  if (!predicate) return 0;
  const auto again = Predicate::parse(predicate->print());
  if (!again || !(*again == *predicate)) std::abort();
  const auto json = Predicate::from_json(predicate->to_json());
  if (!json || !(*json == *predicate)) std::abort();
  for (const Value& value : {Value{}, Value{true}, Value{std::int64_t{-1}}, Value{"Apple M5"}}) {
    (void)predicate->value([&](const Atom&) { return value; });
  }
  return 0;
}
