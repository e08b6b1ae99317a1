#include "scanners/macho/exports.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <vector>

namespace metaldoctor {
namespace macho = llvm::MachO;

namespace {

constexpr std::size_t kMaxName = 32'768;

class TrieWalker {
 public:
  TrieWalker(const Image& image, const std::function<void(const Export&)>& visit)
      : image_(image),
        trie_(image.part(image.linkedit().exports_trie)),
        seen_(trie_.size(), false),
        edge_budget_(trie_.size() * 2 + 64),
        visit_(visit) {}

  Result<void> walk() {
    if (trie_.empty()) return {};
    if (auto ok = enter(0, 0); !ok) return ok;
    while (!open_.empty()) {
      Node& node = open_.back();
      name_.resize(node.name_size);
      if (node.children_left == 0) {
        open_.pop_back();
        continue;
      }
      --node.children_left;
      Cursor cursor(trie_, node.next_child);
      const std::string_view edge = cursor.cstring();
      const std::uint64_t child = cursor.uleb();
      if (!cursor.ok()) return bad(node.next_child, "expected an edge of the trie");
      const std::uint64_t used = cursor.offset() - node.next_child;
      if (used > edge_budget_) return bad(node.next_child, "expected nodes that do not overlap");
      edge_budget_ -= used;
      node.next_child = cursor.offset();
      if (name_.size() + edge.size() > kMaxName)
        return bad(child, fmt::format("expected a name of at most {} bytes", kMaxName));
      name_ += edge;
      if (auto ok = enter(child, name_.size()); !ok) return ok;
    }
    return {};
  }

 private:
  struct Node {
    std::uint64_t next_child;
    unsigned children_left;
    std::size_t name_size;
  };

  Result<void> enter(std::uint64_t offset, std::size_t name_size) {
    if (offset >= trie_.size() || seen_[offset])
      return bad(offset, fmt::format("expected a node inside the {:#x} bytes of the trie that was "
                                     "not reached before",
                                     trie_.size()));
    seen_[offset] = true;
    Cursor cursor(trie_, offset);
    const std::uint64_t size = cursor.uleb();
    if (!cursor.ok() || !fits(trie_.size(), cursor.offset(), size))
      return bad(offset,
                 fmt::format("expected symbol information of {:#x} bytes in the trie", size));
    const std::uint64_t children = cursor.offset() + size;
    if (size != 0)
      if (auto ok = symbol(Cursor(trie_.first(children), cursor.offset())); !ok) return ok;
    Cursor count(trie_, children);
    const unsigned children_left = count.u8();
    if (!count.ok()) return bad(children, "expected a count of children");
    open_.push_back({count.offset(), children_left, name_size});
    return {};
  }

  Result<void> symbol(Cursor cursor) {
    Export symbol;
    symbol.name = name_;
    symbol.flags = cursor.uleb();
    if (symbol.flags & macho::EXPORT_SYMBOL_FLAGS_REEXPORT) {
      symbol.other = cursor.uleb();
      symbol.import_name = cursor.cstring();
    } else {
      symbol.address = image_.base() + cursor.uleb();
      if (symbol.flags & macho::EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER) symbol.other = cursor.uleb();
    }
    if (!cursor.ok()) return bad(cursor.offset(), "expected symbol information inside the trie");
    visit_(symbol);
    return {};
  }

  tl::unexpected<Diagnostic> bad(std::uint64_t offset, std::string what) const {
    return malformed("exports-malformed", image_.where(),
                     image_.linkedit().exports_trie.offset + offset, std::move(what));
  }

  const Image& image_;
  Bytes trie_;
  std::vector<bool> seen_;
  std::uint64_t edge_budget_;  ///< nodes that overlap would be read again and again
  const std::function<void(const Export&)>& visit_;
  std::string name_;
  std::vector<Node> open_;
};

}  // namespace

Result<void> walk_exports(const Image& image, const std::function<void(const Export&)>& visit) {
  return TrieWalker(image, visit).walk();
}

}  // namespace metaldoctor
