#pragma once
#include <functional>
#include <string_view>

#include "scanners/macho/image.h"

namespace metaldoctor {

struct Export {
  std::string_view name;         ///< valid during the visit only
  std::uint64_t flags = 0;       ///< EXPORT_SYMBOL_FLAGS_...
  std::uint64_t address = 0;     ///< virtual address; 0 for re-exports
  std::uint64_t other = 0;       ///< resolver's address or re-export's library ordinal
  std::string_view import_name;  ///< re-exports: the name in the other library; empty = the same
};

/// Visits every symbol of the exports trie (LC_DYLD_EXPORTS_TRIE or LC_DYLD_INFO), in trie order.
/// The trie must be a tree (dyld's mach_o/ExportsTrie.cpp): a node that is reached twice is
/// refused, so time and memory are bounded by the trie's size.
Result<void> walk_exports(const Image& image, const std::function<void(const Export&)>& visit);

}  // namespace metaldoctor
