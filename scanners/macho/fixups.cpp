#include "scanners/macho/fixups.h"

#include <algorithm>

#include "scanners/macho/chained_fixups.h"
#include "scanners/macho/dyld_opcodes.h"

namespace metaldoctor {

Result<Fixups> Fixups::read(const Image& image) {
  Fixups fixups;
  fixups.image_ = &image;
  Result<void> read;
  if (image.linkedit().chained_fixups.size) {
    read = ChainedReader(image, fixups).read();
  } else if (image.linkedit().has_dyld_info) {
    read = OpcodeReader(image).read_binds(fixups);
  }
  if (!read) return tl::unexpected(read.error());
  return fixups;
}

std::uint16_t Fixups::pointer_format() const {
  return chains_.empty() ? std::uint16_t{0} : chains_.front().format;
}

Pointer Fixups::at(std::uint64_t slot) const {
  if (style_ == Style::chained) {
    for (const Chain& chain : chains_) {
      if (slot < chain.address || slot - chain.address >= chain.bytes.size()) continue;
      const auto raw = read_at<std::uint64_t>(chain.bytes, slot - chain.address);
      return raw ? decode(chain.format, *raw) : Pointer{};
    }
    return {};
  }
  const auto bind = std::lower_bound(binds_.begin(), binds_.end(), slot,
                                     [](const Bind& b, std::uint64_t s) { return b.slot < s; });
  Pointer pointer;
  if (bind != binds_.end() && bind->slot == slot) {
    pointer.kind = Pointer::Kind::import;
    pointer.import = bind->import;
    pointer.addend = bind->addend;
    return pointer;
  }
  // Opcode images keep the unslid address in the slot.
  const auto raw = image_->value_at<std::uint64_t>(slot);
  if (raw && *raw && image_->maps(*raw)) {
    pointer.kind = Pointer::Kind::address;
    pointer.address = *raw;
  }
  return pointer;
}

std::string_view Fixups::import_name(std::uint64_t slot) const {
  const Pointer pointer = at(slot);
  return pointer.kind == Pointer::Kind::import ? imports_[pointer.import].name : std::string_view{};
}

Result<void> Fixups::walk(const Visitor& visit) const {
  for (const Chain& chain : chains_)
    if (auto ok = walk_chain(chain, visit); !ok) return ok;
  if (style_ != Style::opcodes) return {};
  auto rebased = OpcodeReader(*image_).walk_rebases([&](std::uint64_t slot) {
    const auto raw = image_->value_at<std::uint64_t>(slot);
    Pointer pointer;
    pointer.kind = Pointer::Kind::address;
    pointer.address = raw.value_or(0);
    visit(slot, pointer);
  });
  if (!rebased) return rebased;
  for (const Bind& bind : binds_) {
    Pointer pointer;
    pointer.kind = Pointer::Kind::import;
    pointer.import = bind.import;
    pointer.addend = bind.addend;
    visit(bind.slot, pointer);
  }
  return {};
}

}  // namespace metaldoctor
