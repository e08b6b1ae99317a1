#pragma once
#include <stddef.h>

namespace metaldoctor::probe {

enum class Type { boolean, integer, text, structure, object };

/// A question that is safe to ask, with every argument that is worth asking.
struct Query {
  char selector[48];  ///< "architecture.name" asks the answer of `architecture` for its `name`
  Type type;
  char encoding[20];  ///< of arm64; used where the class itself has no method to read it from
  size_t argument_count;
  int arguments[48];
};

inline constexpr Query kQueries[] = {
#include "probe_queries.inc"  // generated from tables/data/queries.json and families.json
};

}  // namespace metaldoctor::probe
