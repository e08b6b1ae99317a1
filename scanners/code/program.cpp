#include "scanners/code/program.h"

#include <algorithm>

namespace metaldoctor {
namespace {

constexpr std::string_view kStubSymbol = "_objc_msgSend$";
constexpr std::size_t kLongestSelector = 128;

void sort_by_address(Program::Targets& targets) {
  std::sort(targets.begin(), targets.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

Result<Program> Program::read(const Image& image, const Fixups& fixups, const Vocabulary& words) {
  Program program;
  program.image_ = &image;
  program.arch_ = image.is_arm64() ? &kArm64 : &kX86_64;
  program.fixups_ = &fixups;
  program.words_ = &words;
  auto functions = read_function_starts(image);
  if (!functions) return tl::unexpected(functions.error());
  program.functions_ = std::move(*functions);

  const ObjcStubs stubs = objc_stubs(image, fixups);
  program.undecoded_ = stubs.undecoded;
  for (const ObjcStub& stub : stubs.stubs) {
    Target target = program.selector_target(stub.selector, Route::stub);
    target.sends = true;
    program.stubs_.emplace_back(stub.address, target);
  }
  for (const ImportStub& stub : import_stubs(image, fixups))
    program.stubs_.emplace_back(stub.address, program.import_target(stub.name));
  for (const SelectorSlot& slot : selector_slots(image, fixups))
    program.slots_.emplace_back(slot.address,
                                program.selector_target(slot.selector, Route::selref));
  for (const ImportSlot& slot : import_slots(image, fixups))
    program.slots_.emplace_back(slot.address, program.import_target(slot.name));
  sort_by_address(program.stubs_);
  sort_by_address(program.slots_);
  if (image.is_object())
    if (auto ok = program.read_object(); !ok) return tl::unexpected(ok.error());
  program.read_texts();
  return program;
}

Result<void> Program::read_object() {
  for (const Section& section : image_->sections()) {
    const bool selectors = section.name == "__objc_selrefs";
    if (!section.is_code() && section.name != "__cfstring" && !selectors) continue;
    auto found = read_relocations(*image_, section);
    if (!found) return tl::unexpected(found.error());
    relocations_.insert(relocations_.end(), found->begin(), found->end());
    for (const Relocation& relocation : *found) {
      const auto text = selectors ? image_->string_at(relocation.target) : std::nullopt;
      if (text && !slot(relocation.address))
        slots_.emplace_back(relocation.address, selector_target(*text, Route::selref));
    }
    sort_by_address(slots_);
  }
  std::sort(relocations_.begin(), relocations_.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (const Relocation& relocation : relocations_) {
    if (!relocation.undefined || relocation.symbol.empty()) continue;
    Target target = import_target(relocation.symbol);
    if (relocation.symbol.starts_with(kStubSymbol)) {
      target = selector_target(relocation.symbol.substr(kStubSymbol.size()), Route::symbol);
      target.sends = true;
    }
    symbol_targets_.emplace(relocation.symbol, target);
  }
  return {};
}

void Program::read_texts() {
  for (const Section& section : image_->sections()) {
    if (section.name != "__cstring" && section.name != "__objc_methname") continue;
    Cursor cursor(section.bytes);
    while (!cursor.at_end()) {
      const std::uint64_t at = section.address + cursor.offset();
      const std::string_view text = cursor.cstring();
      // Most strings of a file are too long for a selector or start like prose: skip the lookup.
      if (text.empty() || text.size() > kLongestSelector) continue;
      if (text.front() >= 'a' && text.front() <= 'z') {
        const Selector* selector = words_->selector(text);
        if (!selector || selector->role != SelectorRole::query) continue;
        selector_texts_.push_back(at);
        if (!selector->ambiguous) selectors_in_text_.push_back(text);
      } else if (text.find("MetalDevice") != text.npos || text.starts_with("MTLC")) {
        if (words_->function("_" + std::string(text))) function_texts_.push_back(at);
      }
    }
  }
}

Target Program::selector_target(std::string_view name, Route route) const {
  Target target;
  target.selector = words_->selector(name);
  target.name = name;
  target.route = route;
  return target;
}

Target Program::import_target(std::string_view name) const {
  Target target;
  target.function = words_->function(name);
  target.name = name;
  target.imported = true;
  target.route = Route::function;
  return target;
}

const Target* Program::find(const Targets& targets, std::uint64_t address) {
  const auto found =
      std::lower_bound(targets.begin(), targets.end(), address,
                       [](const auto& entry, std::uint64_t at) { return entry.first < at; });
  return found != targets.end() && found->first == address ? &found->second : nullptr;
}

const Relocation* Program::relocation(std::uint64_t address, std::uint8_t length) const {
  const auto found = std::lower_bound(
      relocations_.begin(), relocations_.end(), address,
      [](const Relocation& entry, std::uint64_t at) { return entry.address < at; });
  if (found == relocations_.end() || found->address - address >= length) return nullptr;
  // Without a symbol, the linker only moves what the instruction says already.
  return found->symbol.empty() && !found->undefined ? nullptr : &*found;
}

const Target* Program::symbol_target(std::string_view symbol) const {
  const auto found = symbol_targets_.find(symbol);
  return found == symbol_targets_.end() ? nullptr : &found->second;
}

const Target* Program::registered(std::string_view selector) const {
  const auto found = registered_.find(selector);
  if (found != registered_.end()) return &found->second;
  return &registered_.emplace(selector, selector_target(selector, Route::registered_selector))
              .first->second;
}

void Program::add_registered(const std::map<std::uint64_t, std::string_view>& globals) {
  for (const auto& [address, name] : globals)
    if (!slot(address))
      slots_.emplace_back(address, selector_target(name, Route::registered_selector));
  sort_by_address(slots_);
}

void Program::add_looked_up(const std::map<std::uint64_t, const Target*>& pointers) {
  for (const auto& [address, target] : pointers)
    if (!slot(address)) slots_.emplace_back(address, *target);
  sort_by_address(slots_);
}

const Target* Program::looked_up(std::string_view name) const {
  const auto found = looked_up_.find(name);
  if (found != looked_up_.end()) return &found->second;
  const Function* function = words_->function("_" + std::string(name));
  if (!function) return nullptr;
  Target target;
  target.function = function;
  target.name = function->name;
  target.imported = true;
  target.route = Route::looked_up;
  return &looked_up_.emplace(name, target).first->second;
}

void Program::set_summary(std::uint64_t function, Summary summary) {
  registers_ |= summary.registers.has_value();
  summaries_[function] = std::move(summary);
}

bool Program::reaches(std::string_view selector) const {
  const auto names = [&](const auto& entry) {
    return entry.second.selector && entry.second.name == selector;
  };
  return std::any_of(stubs_.begin(), stubs_.end(), names) ||
         std::any_of(slots_.begin(), slots_.end(), names) ||
         std::any_of(symbol_targets_.begin(), symbol_targets_.end(), names) ||
         registered_.count(selector) != 0;
}

}  // namespace metaldoctor
