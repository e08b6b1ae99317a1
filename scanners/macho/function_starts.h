#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "scanners/macho/image.h"

namespace metaldoctor {

/// Where an image's functions begin. Sorted, unique, each in a code section.
struct FunctionStarts {
  enum class Source { function_starts, symbols, unwind_info, calls } source = Source::symbols;
  std::vector<std::uint64_t> addresses;

  /// The start of the function that holds `vm` and where it ends (the next start or the end of its
  /// section); {0, 0} when `vm` is in no code section.
  std::pair<std::uint64_t, std::uint64_t> around(const Image& image, std::uint64_t vm) const;
};

/// LC_FUNCTION_STARTS; where that is absent or empty: symbols, else __unwind_info, else the
/// targets of bl instructions (arm64). Starts of code sections are always among them.
Result<FunctionStarts> read_function_starts(const Image& image);

/// The offsets in an LC_FUNCTION_STARTS payload, relative to the image's base; at most one a byte.
Result<std::vector<std::uint64_t>> decode_function_starts(Bytes payload, const std::string& where,
                                                          std::uint64_t payload_offset);
/// Function offsets of a __unwind_info section (both page kinds), as far as they can be read.
std::vector<std::uint64_t> decode_unwind_info(Bytes section);

/// Symbol names of functions; empty where there is none. Looks in the symbol table, and for what
/// is missing there in the exports trie. `addresses` must be sorted.
std::vector<std::string> function_names(const Image& image,
                                        std::span<const std::uint64_t> addresses);

}  // namespace metaldoctor
