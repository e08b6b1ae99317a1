#include "scanners/simulator/objc_model.h"

#include <fmt/format.h>

namespace metaldoctor {

std::uint64_t ObjcModel::reserve(std::uint64_t size) {
  size = (size + 15) / 16 * 16;
  const std::uint64_t end = guest::objects + guest::objects_size;
  if (size > end - next_) {
    full_ = true;
    return 0;
  }
  return std::exchange(next_, next_ + size);
}

ObjcClass* ObjcModel::find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

ObjcClass& ObjcModel::ensure(std::string_view name, ObjcClass* superclass, std::string_view image) {
  if (ObjcClass* found = find(name)) return *found;
  ObjcClass& made = classes_.emplace_back();
  made.name = name;
  made.image = image;
  made.superclass = superclass;
  by_name_.emplace(made.name, &made);
  constexpr std::uint64_t class_size = 0x40;
  const std::uint64_t address = reserve(2 * class_size);
  place(made, address, address + class_size);
  if (!address) return made;
  memory_.store(address, made.meta, true);
  memory_.store(address + 8, superclass ? superclass->address : 0, true);
  return made;
}

void ObjcModel::place(ObjcClass& cls, std::uint64_t address, std::uint64_t meta) {
  by_address_.erase(cls.address);
  by_meta_.erase(cls.meta);
  cls.address = address;
  cls.meta = meta;
  by_address_[address] = &cls;
  by_meta_[meta] = &cls;
}

ObjcClass* ObjcModel::class_at(std::uint64_t address, bool* is_meta) {
  if (address == 0) return nullptr;
  if (is_meta) *is_meta = false;
  if (const auto found = by_address_.find(address); found != by_address_.end())
    return found->second;
  const auto found = by_meta_.find(address);
  if (found == by_meta_.end()) return nullptr;
  if (is_meta) *is_meta = true;
  return found->second;
}

ObjcMethod* ObjcModel::lookup(ObjcClass& cls, std::string_view selector, bool meta,
                              ObjcClass** owner) {
  const auto search = [&](ObjcClass* from, auto table) -> ObjcMethod* {
    for (ObjcClass* at = from; at; at = at->superclass) {
      auto& methods = at->*table;
      const auto found = methods.find(selector);
      if (found == methods.end()) continue;
      if (owner) *owner = at;
      return &found->second;
    }
    return nullptr;
  };
  if (!meta) return search(&cls, &ObjcClass::methods);
  if (ObjcMethod* found = search(&cls, &ObjcClass::class_methods)) return found;
  // A root metaclass inherits from the root class.
  return root_ ? search(root_, &ObjcClass::methods) : nullptr;
}

std::uint64_t ObjcModel::method_handle(ObjcMethod& method) {
  if (!method.handle) {
    method.handle = reserve(32);
    methods_[method.handle] = &method;
  }
  return method.handle;
}

ObjcMethod* ObjcModel::method_at(std::uint64_t handle) {
  const auto found = methods_.find(handle);
  return handle == 0 || found == methods_.end() ? nullptr : found->second;
}

std::uint64_t ObjcModel::text(std::string_view text) {
  const auto [entry, fresh] = texts_.try_emplace(std::string(text), 0);
  if (!fresh) return entry->second;
  entry->second = reserve(text.size() + 1);
  if (entry->second)
    memory_.write(entry->second,
                  {reinterpret_cast<const std::uint8_t*>(entry->first.c_str()), text.size() + 1},
                  true);
  return entry->second;
}

std::uint64_t ObjcModel::selector(std::string_view name) {
  return text(name);
}

std::optional<std::string> ObjcModel::selector_name(std::uint64_t address) const {
  constexpr std::uint64_t longest = 4096;
  return memory_.cstring(address, longest);
}

ObjcObject* ObjcModel::create(ObjcClass& cls, std::string origin) {
  const std::uint64_t address = reserve(0x40);
  if (!address) return nullptr;
  memory_.store(address, cls.address, true);
  return &adopt(cls, address, std::move(origin));
}

ObjcObject& ObjcModel::adopt(ObjcClass& cls, std::uint64_t address, std::string origin) {
  const std::uint64_t ordinal = ++origins_[origin];
  ObjcObject& made = objects_[address];
  made = {};
  made.address = address;
  made.cls = &cls;
  made.origin = ordinal == 1 ? std::move(origin) : fmt::format("{}#{}", origin, ordinal);
  return made;
}

ObjcObject* ObjcModel::object(std::uint64_t address) {
  const auto found = objects_.find(address);
  return found == objects_.end() ? nullptr : &found->second;
}

}  // namespace metaldoctor
