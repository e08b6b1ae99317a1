#include "tests/unit/shim_dylib/simulated_objc.h"

#include <set>
#include <utility>

#include "shim/dylib/install.h"

struct objc_selector {
  std::string name;
};

namespace {

std::map<std::string, std::unique_ptr<objc_class>>& classes() {
  static std::map<std::string, std::unique_ptr<objc_class>> all;
  return all;
}

}  // namespace

objc_selector* sel_registerName(const char* name) {
  static std::map<std::string, std::unique_ptr<objc_selector>> all;
  auto& entry = all[name];
  if (!entry) entry = std::make_unique<objc_selector>(objc_selector{name});
  return entry.get();
}

objc_class* objc_getClass(const char* name) {
  const auto found = classes().find(name);
  return found == classes().end() ? nullptr : found->second.get();
}

objc_class* object_getClass(objc_object* object) {
  return object->isa;
}
const char* class_getName(objc_class* cls) {
  return cls->name.c_str();
}

objc_method* class_getInstanceMethod(objc_class* cls, objc_selector* name) {
  for (; cls; cls = cls->super) {
    const auto found = cls->methods.find(name);
    if (found != cls->methods.end()) return found->second.get();
  }
  return nullptr;
}

void (*class_replaceMethod(objc_class* cls, objc_selector* name, void (*imp)(),
                           const char* types))() {
  auto& method = cls->methods[name];
  if (method) return std::exchange(method->imp, imp);
  method = std::make_unique<objc_method>();
  method->imp = imp;
  method->types = types;
  return nullptr;
}

void (*method_getImplementation(objc_method* method))() {
  return method->imp;
}
const char* method_getTypeEncoding(objc_method* method) {
  return method->types.c_str();
}

namespace metaldoctor::shim {

void reset_runtime() {
  classes().clear();
  state = State{};
}

objc_class* add_class(const std::string& name, objc_class* super) {
  auto& entry = classes()[name];
  entry = std::make_unique<objc_class>();
  entry->name = name;
  entry->super = super;
  return entry.get();
}

void add_method(objc_class* cls, const char* selector, Method imp, const std::string& types) {
  cls->methods.erase(sel_registerName(selector));  // replacing would keep the old types
  class_replaceMethod(cls, sel_registerName(selector), reinterpret_cast<Imp>(imp), types.c_str());
}

Method lookup(objc_class* cls, const char* selector) {
  objc_method* method = class_getInstanceMethod(cls, sel_registerName(selector));
  return method ? reinterpret_cast<Method>(method->imp) : nullptr;
}

std::uint64_t send(objc_object& object, const char* selector, std::int64_t argument) {
  return lookup(object.isa, selector)(&object, sel_registerName(selector), argument);
}

std::vector<std::string> own_methods(const objc_class* cls) {
  std::set<std::string> names;
  for (const auto& [selector, method] : cls->methods) names.insert(selector->name);
  return {names.begin(), names.end()};
}

}  // namespace metaldoctor::shim
