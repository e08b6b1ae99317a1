#pragma once
// A small Objective-C runtime with the functions that shim/dylib imports, so that its installation
// logic runs in an ordinary test. Rules are libobjc's: class_getInstanceMethod walks to the
// parents, class_replaceMethod touches only the class it is given.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shim/dylib/system.h"

namespace metaldoctor::shim {

using Method = std::uint64_t (*)(Id, Sel, std::int64_t);

struct TestMethod {
  Imp imp = nullptr;
  std::string types;
};

}  // namespace metaldoctor::shim

struct objc_class {
  std::string name;
  objc_class* super = nullptr;
  std::map<objc_selector*, std::unique_ptr<objc_method>> methods;
};
struct objc_object {
  objc_class* isa = nullptr;
};
struct objc_method : metaldoctor::shim::TestMethod {};

namespace metaldoctor::shim {

/// Forgets all classes and everything that was installed.
void reset_runtime();
objc_class* add_class(const std::string& name, objc_class* super);
void add_method(objc_class* cls, const char* selector, Method imp, const std::string& types);
/// What the runtime would call.
Method lookup(objc_class* cls, const char* selector);
std::uint64_t send(objc_object& object, const char* selector, std::int64_t argument = 0);
/// Selectors that `cls` itself implements.
std::vector<std::string> own_methods(const objc_class* cls);

}  // namespace metaldoctor::shim
