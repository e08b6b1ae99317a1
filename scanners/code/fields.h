#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "scanners/code/trace.h"

namespace metaldoctor {

/// A field of an object, or a global, that keeps answers.
struct KeptField {
  bool global = false;
  std::int64_t offset = 0;             ///< in the object; global: the address
  std::uint8_t size = 0;               ///< of the store that filled it
  std::uint64_t function = 0;          ///< that fills it
  std::vector<std::uint64_t> readers;  ///< out: loads elsewhere
  bool stored_elsewhere = false;  ///< out: another function has a store of this size and offset
};

/// Finds who reads the fields. Objects have no types in machine code, so a load counts if
/// - it goes through an accessor (`add x0, x0, #k; ret`) whose results are read at three or more
///   of the fields, or
/// - its base is read at two or more of the fields in the same function, or
/// - it loads the global's address.
/// All of them are likely, not certain.
/// Looks into at most 256 functions; false if there were more.
bool find_readers(const Program& program, const std::function<FunctionTrace(std::uint64_t)>& trace,
                  std::vector<KeptField>& fields);

}  // namespace metaldoctor
