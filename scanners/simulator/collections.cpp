// NSArray, NSDictionary, NSSet and NSData as far as probing code uses them; classes that a program
// defines itself.
#include <fmt/format.h>

#include <algorithm>

#include "scanners/simulator/call_access.h"
#include "scanners/simulator/foundation.h"
#include "scanners/simulator/image_set.h"

namespace metaldoctor {
namespace {

constexpr std::size_t max_items = 100'000;

ObjcObject* self_of(Call& call) {
  ObjcObject* object = call.process.objc.object(call.arg(0));
  if (!object) call.fault("is no collection of the host", call.arg(0));
  return object;
}
/// Keys are compared like isEqual: does: strings by content, everything else by identity.
bool same_key(Process& process, std::uint64_t a, std::uint64_t b) {
  if (a == b) return true;
  const auto x = process.string_of(a), y = process.string_of(b);
  if (x && y) return *x == *y;
  const ObjcObject *first = process.objc.object(a), *second = process.objc.object(b);
  return first && second && first->integer && first->integer == second->integer;
}

void count(Call& call) {
  const ObjcObject* self = self_of(call);
  if (self) call.returns(self->items.size() + self->entries.size());
}
void array_at(Call& call) {
  const ObjcObject* self = self_of(call);
  if (!self) return;
  if (call.arg(2) >= self->items.size())
    return call.process.stop("exception", "an array index is out of bounds", call.process.caller());
  call.returns(self->items[call.arg(2)]);
}
void array_first(Call& call) {
  const ObjcObject* self = self_of(call);
  if (self) call.returns(self->items.empty() ? 0 : self->items.front());
}
void array_last(Call& call) {
  const ObjcObject* self = self_of(call);
  if (self) call.returns(self->items.empty() ? 0 : self->items.back());
}
void array_add(Call& call) {
  ObjcObject* self = self_of(call);
  if (!self) return;
  if (self->items.size() >= max_items)
    return call.process.stop("budget-objects", "a collection grows too large",
                             call.process.caller());
  self->items.push_back(call.arg(2));
}
void array_remove_all(Call& call) {
  ObjcObject* self = self_of(call);
  if (!self) return;
  self->items.clear();
  self->entries.clear();
}
void contains(Call& call) {
  const ObjcObject* self = self_of(call);
  if (!self) return;
  const auto is = [&](std::uint64_t item) { return same_key(call.process, item, call.arg(2)); };
  call.returns(std::ranges::any_of(self->items, is));
}
/// arrayWithObjects:count:, initWithObjects:count:
void array_with(Call& call) {
  if (call.arg(3) > max_items) return call.fault("holds too many objects", call.arg(2));
  if (!call.process.charge(call.arg(3) * 8)) return;
  ObjcObject* made = call.process.new_object("NSMutableArray", "NSArray");
  for (std::uint64_t i = 0; i < call.arg(3) && !call.process.stopped(); ++i)
    made->items.push_back(call.load<std::uint64_t>(call.arg(2) + i * 8));
  call.returns(made->address);
}
void empty_of_class(Call& call) {  // +array, +dictionary, +arrayWithCapacity: ...
  bool is_class = false;
  const ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  if (cls) call.returns(call.process.new_object(cls->name, cls->name)->address);
}
void array_with_one(Call& call) {
  ObjcObject* made = call.process.new_object("NSMutableArray", "NSArray");
  made->items.push_back(call.arg(2));
  call.returns(made->address);
}

std::pair<std::uint64_t, std::uint64_t>* entry_of(Call& call, ObjcObject& self, std::uint64_t key) {
  for (auto& entry : self.entries)
    if (same_key(call.process, entry.first, key)) return &entry;
  return nullptr;
}
void dictionary_get(Call& call) {
  ObjcObject* self = self_of(call);
  if (!self) return;
  const auto* entry = entry_of(call, *self, call.arg(2));
  call.returns(entry ? entry->second : 0);
}
void dictionary_set(Call& call) {
  ObjcObject* self = self_of(call);
  if (!self) return;
  if (auto* entry = entry_of(call, *self, call.arg(3))) {
    entry->second = call.arg(2);
    return;
  }
  if (self->entries.size() >= max_items)
    return call.process.stop("budget-objects", "a collection grows too large",
                             call.process.caller());
  self->entries.emplace_back(call.arg(3), call.arg(2));
}
/// dictionaryWithObjects:forKeys:count:
void dictionary_with(Call& call) {
  if (call.arg(4) > max_items) return call.fault("holds too many objects", call.arg(2));
  if (!call.process.charge(call.arg(4) * 16)) return;
  ObjcObject* made = call.process.new_object("NSMutableDictionary", "NSDictionary");
  for (std::uint64_t i = 0; i < call.arg(4) && !call.process.stopped(); ++i)
    made->entries.emplace_back(call.load<std::uint64_t>(call.arg(3) + i * 8),
                               call.load<std::uint64_t>(call.arg(2) + i * 8));
  call.returns(made->address);
}
void dictionary_with_one(Call& call) {
  ObjcObject* made = call.process.new_object("NSMutableDictionary", "NSDictionary");
  made->entries.emplace_back(call.arg(3), call.arg(2));
  call.returns(made->address);
}
void dictionary_keys(Call& call) {
  ObjcObject* self = self_of(call);
  if (!self) return;
  const auto entries = self->entries;
  if (!call.process.charge(entries.size() * 8)) return;
  ObjcObject* made = call.process.new_object("NSMutableArray", "allKeys");
  for (const auto& [key, value] : entries) made->items.push_back(key);
  call.returns(made->address);
}

/// countByEnumeratingWithState:objects:count: {state, items, mutations, extra[5]}: everything is
/// handed out in one batch from a buffer of the collection's own.
void enumerate(Call& call) {
  ObjcObject* self = self_of(call);
  if (!self) return;
  const std::uint64_t state = call.arg(2);
  if (call.load<std::uint64_t>(state) != 0) return call.returns(0);
  std::vector<std::uint64_t> items = self->items;
  for (const auto& [key, value] : self->entries) items.push_back(key);
  const std::uint64_t buffer = call.process.allocate((items.size() + 1) * 8);
  if (!buffer) return;
  for (std::size_t i = 0; i < items.size(); ++i) call.store(buffer + 8 + i * 8, items[i]);
  call.store<std::uint64_t>(buffer, 1);  // the mutation count, which never changes
  call.store<std::uint64_t>(state, 1);
  call.store(state + 8, buffer + 8);
  call.store(state + 16, buffer);
  call.returns(items.size());
}

constexpr HostMethod methods[] = {
    {"NSArray", "NSObject", true, "array", "@16@0:8", empty_of_class},
    {"NSArray", "NSObject", true, "arrayWithObjects:count:", "@32@0:8r^@16Q24", array_with},
    {"NSArray", "NSObject", true, "arrayWithObject:", "@24@0:8@16", array_with_one},
    {"NSArray", "NSObject", false, "initWithObjects:count:", "@32@0:8r^@16Q24", array_with},
    {"NSArray", "NSObject", false, "count", "Q16@0:8", count},
    {"NSArray", "NSObject", false, "objectAtIndex:", "@24@0:8Q16", array_at},
    {"NSArray", "NSObject", false, "objectAtIndexedSubscript:", "@24@0:8Q16", array_at},
    {"NSArray", "NSObject", false, "firstObject", "@16@0:8", array_first},
    {"NSArray", "NSObject", false, "lastObject", "@16@0:8", array_last},
    {"NSArray", "NSObject", false, "containsObject:", "B24@0:8@16", contains},
    {"NSArray", "NSObject", false,
     "countByEnumeratingWithState:objects:count:", "Q40@0:8^{?}16^@24Q32", enumerate},
    {"NSMutableArray", "NSArray", true, "arrayWithCapacity:", "@24@0:8Q16", empty_of_class},
    {"NSMutableArray", "NSArray", false, "addObject:", "v24@0:8@16", array_add},
    {"NSMutableArray", "NSArray", false, "removeAllObjects", "v16@0:8", array_remove_all},
    {"NSSet", "NSObject", true, "set", "@16@0:8", empty_of_class},
    {"NSSet", "NSObject", false, "count", "Q16@0:8", count},
    {"NSSet", "NSObject", false, "containsObject:", "B24@0:8@16", contains},
    {"NSSet", "NSObject", false,
     "countByEnumeratingWithState:objects:count:", "Q40@0:8^{?}16^@24Q32", enumerate},
    {"NSMutableSet", "NSSet", false, "addObject:", "v24@0:8@16", array_add},
    {"NSDictionary", "NSObject", true, "dictionary", "@16@0:8", empty_of_class},
    {"NSDictionary", "NSObject", true,
     "dictionaryWithObjects:forKeys:count:", "@40@0:8r^@16r^@24Q32", dictionary_with},
    {"NSDictionary", "NSObject", true, "dictionaryWithObject:forKey:", "@32@0:8@16@24",
     dictionary_with_one},
    {"NSDictionary", "NSObject", false, "initWithObjects:forKeys:count:", "@40@0:8r^@16r^@24Q32",
     dictionary_with},
    {"NSDictionary", "NSObject", false, "count", "Q16@0:8", count},
    {"NSDictionary", "NSObject", false, "objectForKey:", "@24@0:8@16", dictionary_get},
    {"NSDictionary", "NSObject", false, "objectForKeyedSubscript:", "@24@0:8@16", dictionary_get},
    {"NSDictionary", "NSObject", false, "valueForKey:", "@24@0:8@16", dictionary_get},
    {"NSDictionary", "NSObject", false, "allKeys", "@16@0:8", dictionary_keys},
    {"NSDictionary", "NSObject", false,
     "countByEnumeratingWithState:objects:count:", "Q40@0:8^{?}16^@24Q32", enumerate},
    {"NSMutableDictionary", "NSDictionary", true, "dictionaryWithCapacity:", "@24@0:8Q16",
     empty_of_class},
    {"NSMutableDictionary", "NSDictionary", false, "setObject:forKey:", "v32@0:8@16@24",
     dictionary_set},
    {"NSMutableDictionary", "NSDictionary", false, "setObject:forKeyedSubscript:", "v32@0:8@16@24",
     dictionary_set},
    {"NSMutableDictionary", "NSDictionary", false, "setValue:forKey:", "v32@0:8@16@24",
     dictionary_set},
    {"NSMutableDictionary", "NSDictionary", false, "removeAllObjects", "v16@0:8", array_remove_all},
};

// ---- classes in images: objc4's class_t, class_ro_t and method lists

constexpr std::uint64_t data_mask = 0x00007ffffffffff8;
constexpr std::uint32_t relative_list = 0x80000000, direct_selectors = 0x40000000;
constexpr std::uint32_t max_methods = 10'000;

void read_methods(Process& process, std::uint64_t list,
                  std::map<std::string, ObjcMethod, std::less<>>& into) {
  const Memory& memory = process.memory;
  const auto flags = memory.load<std::uint32_t>(list);
  const auto number = memory.load<std::uint32_t>(list + 4);
  if (!list || !flags || !number || *number > max_methods) return;
  const auto target = [&](std::uint64_t place) {
    const auto offset = memory.load<std::int32_t>(place);
    return offset ? place + static_cast<std::uint64_t>(std::int64_t{*offset}) : 0;
  };
  for (std::uint32_t i = 0; i < *number; ++i) {
    std::uint64_t name = 0, types = 0, imp = 0;
    if (*flags & relative_list) {
      const std::uint64_t at = list + 8 + std::uint64_t{i} * 12;
      name = target(at);
      if (!(*flags & direct_selectors)) name = memory.load<std::uint64_t>(name).value_or(0);
      types = target(at + 4);
      imp = target(at + 8);
    } else {
      const std::uint64_t at = list + 8 + std::uint64_t{i} * 24;
      name = memory.load<std::uint64_t>(at).value_or(0);
      types = memory.load<std::uint64_t>(at + 8).value_or(0);
      imp = memory.load<std::uint64_t>(at + 16).value_or(0);
    }
    const auto selector = process.objc.selector_name(name);
    if (!selector || !imp) continue;
    into[*selector] = {*selector, memory.cstring(types).value_or(""), imp, imp, 0};
  }
}

void register_class(Process& process, std::uint64_t address) {
  const Memory& memory = process.memory;
  const auto read = [&](std::uint64_t at) { return memory.load<std::uint64_t>(at).value_or(0); };
  const std::uint64_t meta = read(address);
  const std::uint64_t ro = read(address + 32) & data_mask, meta_ro = read(meta + 32) & data_mask;
  const auto name = memory.cstring(read(ro + 24), 1024);
  if (!name || process.objc.find(*name)) return;
  ObjcClass* superclass = process.objc.class_at(read(address + 8));
  ObjcClass& cls =
      process.objc.ensure(*name, superclass ? superclass : process.objc.find("NSObject"), "");
  process.objc.place(cls, address, meta);
  cls.defined_by_program = true;
  cls.instance_size =
      std::clamp<std::uint64_t>(memory.load<std::uint32_t>(ro + 8).value_or(16), 16, 1 << 20);
  read_methods(process, read(ro + 32), cls.methods);
  read_methods(process, read(meta_ro + 32), cls.class_methods);
}

}  // namespace

std::span<const HostMethod> collection_methods() {
  return methods;
}

void register_program_classes(Process& process, const SimLoaded& image) {
  for (const std::string_view segment : {"__DATA", "__DATA_CONST"}) {
    const Section* list = image.image->section(segment, "__objc_classlist");
    if (!list) continue;
    for (std::uint64_t at = 0; at + 8 <= list->size; at += 8)
      register_class(
          process,
          process.memory.load<std::uint64_t>(image.address(list->address + at)).value_or(0));
  }
}

}  // namespace metaldoctor
