#pragma once
#include "tools/metal-probe/query.h"
#include "tools/metal-probe/system.h"

namespace metaldoctor::probe {

/// What one message gave. `text` points into an autoreleased string.
struct Reply {
  const char* problem = nullptr;  ///< why there is no answer; null = answered
  uint64_t integer = 0;           ///< boolean (0 or 1), integer
  bool is_signed = false;
  const char* text = nullptr;
  uint64_t size[3] = {};  ///< structure: MTLSize
  Id object = nullptr;
};

/// Asks only what the receiver answers, and only in the form in which it was declared: nothing
/// here can raise "unrecognized selector" or read a result of another kind.
Reply ask(Id device, const Query& query, int64_t argument);

/// Whether `object` answers `selector`, by a method or by forwarding.
bool responds(Id object, const char* selector);
/// Whether the class or a parent of it has that name.
bool is_kind_of(Id object, const char* class_name);

}  // namespace metaldoctor::probe
