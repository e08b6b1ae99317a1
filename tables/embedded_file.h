#pragma once
#include <span>
#include <string_view>

namespace metaldoctor {

/// A file of the source tree that was put into the executable at build time.
struct EmbeddedFile {
  std::string_view name;  ///< path below the directory that embeds it, '/' separated
  std::string_view bytes;
};

/// tables/data, tables/schemas and tables/captures, sorted by name.
std::span<const EmbeddedFile> embedded_tables();

}  // namespace metaldoctor
