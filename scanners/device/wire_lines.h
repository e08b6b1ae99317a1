#pragma once
// Lines of the wire format (tables/wire_format.h), before anybody asks what they mean.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tables/answer.h"
#include "tables/diagnostic.h"
#include "tables/wire_format.h"

namespace metaldoctor {

/// A line that was not used: cut, glued to another, edited, or of a kind that is not known here.
struct WireDamage {
  std::size_t line = 0;  ///< 1-based
  std::string what;
};

/// A line whose check and fields are right.
struct WireLine {
  std::size_t number = 0;                ///< 1-based
  const wire::Record* record = nullptr;  ///< a row of wire::kRecords
  std::vector<std::string_view> fields;  ///< as many as the record has, still escaped

  bool is(std::string_view name) const { return name == record->name; }
  std::string text(std::size_t field) const;
  std::uint64_t number_at(std::size_t field) const;
  bool truth(std::size_t field) const { return fields[field] == "yes"; }
  std::vector<std::int64_t> arguments(std::size_t field) const;
  /// Unknown for an integer beyond 63 bits.
  Value value(std::size_t field) const;
};

struct WireText {
  std::string version;               ///< of the producer
  std::vector<std::size_t> headers;  ///< lines; a journal has one a process
  std::vector<WireLine> lines;
  std::vector<WireDamage> damaged;  ///< the first hundred
  std::size_t damaged_count = 0;
};

/// True for anything that claims to be in the wire format, of any version. What a login shell says
/// before it may come first: the header is looked for in the first 64 KiB.
bool is_wire(std::string_view text);

/// Reads what `producer` ("probe", "shim") wrote. The lines point into `text`. Refused are texts
/// that are not in the format, of another version or producer, over 16 MiB, or without one whole
/// line.
Result<WireText> read_wire(std::string_view text, std::string_view producer, std::string_view name);

}  // namespace metaldoctor
