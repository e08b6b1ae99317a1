#pragma once
// Internal to tables/: what the checks of the table files share.
#include <set>
#include <string>
#include <vector>

#include "tables/tables_impl.h"

namespace metaldoctor {

/// Collects what is wrong with one file, with a JSON pointer each.
class Problems {
 public:
  Problems(const TableSource& source, std::string name)
      : shown_(source.shown(name)),
        fault_(source.is_override(name) ? Fault::input : Fault::bug),
        name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void add(std::string_view code, const std::string& pointer, std::string what) {
    list.push_back(
        {fault_, std::string(code), fmt::format("{}: {}", shown_, pointer), std::move(what), {}});
  }
  /// A reference to a row of another file, or of this one.
  void reference(bool resolves, const std::string& pointer, std::string_view kind,
                 std::string_view target) {
    if (!resolves) {
      add("table-reference", pointer, fmt::format("there is no {} '{}'", kind, target));
    }
  }
  void unique(std::set<std::string>& seen, const std::string& id, const std::string& pointer) {
    if (!seen.insert(id).second) {
      add("table-duplicate", pointer, fmt::format("'{}' appears twice", id));
    }
  }

  std::vector<Diagnostic> list;

 private:
  std::string shown_;
  Fault fault_;
  std::string name_;
};

inline std::string row_pointer(std::size_t index, std::string_view rest = {}) {
  return fmt::format("/rows/{}{}", index, rest);
}

/// A canonical selector, or nothing.
void check_query_of(const Tables& tables, const std::string& query, const std::string& pointer,
                    Problems& problems);

/// One file of apps/: ranges, rules, releases and markers.
void check_app(const Tables& tables, Problems& problems);

}  // namespace metaldoctor
