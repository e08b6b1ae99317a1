#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scanners/macho/fixups.h"
#include "scanners/macho/image.h"
#include "scanners/macho/objc.h"
#include "scanners/simulator/memory.h"
#include "scanners/simulator/protocol.h"

namespace metaldoctor {

/// One image of a simulated process. Read once, mapped anew for each run.
struct SimLoaded {
  std::string path, leaf;
  std::unique_ptr<MachOFile> file;
  std::unique_ptr<Image> image;
  std::unique_ptr<Fixups> fixups;
  struct Fixup {
    std::uint64_t slot = 0;
    std::uint64_t target = 0;  ///< unslid address, or addend of an import
    std::int32_t import = -1;  ///< index into Fixups::imports()
  };
  std::vector<Fixup> all_fixups;
  std::unordered_map<std::string, std::uint64_t> exports;  ///< unslid
  std::unordered_map<std::string, std::string> reexports;  ///< name -> name elsewhere
  std::vector<SelectorSlot> selectors;
  std::uint64_t lowest = 0, span = 0;  ///< unslid extent of what is mapped
  std::uint64_t slide = 0;
  bool initialized = false;  ///< of the current run

  std::uint64_t address(std::uint64_t unslid) const { return unslid + slide; }
  bool contains(std::uint64_t slid) const { return slid - (lowest + slide) < span; }
};

/// The images of a process: their layout, exports and fixups. Addresses follow from the order of
/// the images alone.
class ImageSet {
 public:
  /// `arch` empty: arm64 if the first image has it, else x86_64.
  static Result<ImageSet> read(const std::vector<SimImage>& images, std::string arch,
                               const SimBudget& budget);

  const std::string& arch() const { return arch_; }
  std::vector<SimLoaded>& images() { return images_; }
  const std::vector<SimLoaded>& images() const { return images_; }
  const SimLoaded* at(std::uint64_t slid) const;
  /// By path or leaf name.
  const SimLoaded* find(std::string_view name) const;
  /// Leaf names of libraries that no image of the set provides and that are not the system's.
  std::vector<std::string> missing() const;
  bool links(std::string_view leaf) const;

  Result<void> map(Memory& memory) const;
  /// What a symbol is bound to: 0 = leave the slot 0 (weak and absent).
  using Resolve = std::function<std::uint64_t(const SimLoaded&, const Import&)>;
  Result<void> fix_up(Memory& memory, const Resolve& resolve) const;

  /// An exported symbol's slid address: in `only` if given, else in the first image that has it.
  std::optional<std::uint64_t> exported(std::string_view name, const SimLoaded* only) const;
  /// The image that a two-level import names; nullptr = not one of the set or any.
  const SimLoaded* library_of(const SimLoaded& image, const Import& import) const;
  /// Like exported(), then the symbol table: internal functions for steps.
  std::optional<std::uint64_t> symbol(std::string_view name, const SimLoaded* only) const;
  /// "libx.dylib+0x1234"; empty if in no image.
  std::string name_of(std::uint64_t slid) const;

 private:
  Result<void> add(const SimImage& image, const SimBudget& budget);

  std::string arch_;
  std::vector<SimLoaded> images_;
  std::uint64_t next_ = guest::images;
};

std::string_view leaf_name(std::string_view path);
/// Provided by macOS itself: /usr/lib/..., /System/...
bool is_system_library(std::string_view path);

}  // namespace metaldoctor
