#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tables/diagnostic.h"

namespace metaldoctor {

/// A method of one of Metal's classes: tables/data/metal-runtime.json.
struct RuntimeMethod {
  std::string selector, types, types_x86_64, does;
  std::vector<std::int64_t> families;
};
struct RuntimeClass {
  std::string name, superclass, superclass_x86_64, image;
  std::vector<std::string> protocols;
  std::vector<RuntimeMethod> methods;
};

/// What a message returns: tables/data/objc-selectors.json.
struct SelectorRow {
  enum class Returns { nothing, object, array, boolean, integer, floating, pointer, structure };
  enum class Role { creates, getter, acts, absent };
  Returns returns = Returns::object;
  Role role = Role::getter;
  std::optional<std::int64_t> value;  ///< what a getter answers; a guess, so it is an assumption
  std::uint64_t size = 0;             ///< of a structure
  std::string on;                     ///< the protocol that declares it, where that matters
};

/// The tables that only the simulator reads.
struct RuntimeTables {
  std::vector<RuntimeClass> classes;
  std::map<std::string, std::int64_t> feature_families;
  std::unordered_map<std::string, SelectorRow> selectors;

  static Result<RuntimeTables> embedded();
};

}  // namespace metaldoctor
