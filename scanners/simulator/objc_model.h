#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scanners/simulator/memory.h"

namespace metaldoctor {

struct ObjcMethod {
  std::string selector, types;
  std::uint64_t imp = 0;       ///< a trap (ours) or an address in an image (the program's)
  std::uint64_t original = 0;  ///< imp when the class was made; 0 = added later
  std::uint64_t handle = 0;    ///< what the program sees as Method; 0 until it asks
};

struct ObjcClass {
  std::string name, image;
  ObjcClass* superclass = nullptr;
  std::uint64_t address = 0, meta = 0;  ///< class and metaclass objects
  std::uint64_t instance_size = 16;
  bool defined_by_program = false;
  std::vector<std::string> protocols;
  std::map<std::string, ObjcMethod, std::less<>> methods, class_methods;

  bool is_kind_of(const ObjcClass* other) const {
    for (const ObjcClass* at = this; at; at = at->superclass)
      if (at == other) return true;
    return false;
  }
};

/// An object and, where Foundation keeps something in it, what that is.
struct ObjcObject {
  std::uint64_t address = 0;
  ObjcClass* cls = nullptr;
  std::string origin;  ///< a name that does not depend on addresses
  std::optional<std::string> text;
  std::optional<double> real;
  std::optional<std::int64_t> integer;
  std::vector<std::uint64_t> items;                              ///< arrays, sets
  std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;  ///< dictionaries, in order
  std::map<std::string, std::uint64_t> fields;  ///< what getters gave or setters set
  std::optional<std::size_t> device;            ///< raw device: index into the request's devices
  std::uint64_t base = 0;                       ///< wrapper: what it forwards to
  std::uint64_t buffer = 0;                     ///< UTF8String, fast enumeration
};

/// Objective-C's runtime state: classes, methods, selectors and objects of one process. It knows
/// names and addresses only; what methods do is in foundation.cpp and device_model.cpp.
class ObjcModel {
 public:
  explicit ObjcModel(Memory& memory) : memory_(memory) {}

  ObjcClass* find(std::string_view name);
  /// Makes the class when there is none. The superclass of an existing class is left alone.
  ObjcClass& ensure(std::string_view name, ObjcClass* superclass, std::string_view image);
  /// Gives a class another address: one that the program defines in its own data.
  void place(ObjcClass& cls, std::uint64_t address, std::uint64_t meta);
  ObjcClass* class_at(std::uint64_t address, bool* is_meta = nullptr);
  std::deque<ObjcClass>& classes() { return classes_; }
  void set_root(ObjcClass* root) { root_ = root; }

  /// The method that a message finds; `meta`: the receiver is a class.
  ObjcMethod* lookup(ObjcClass& cls, std::string_view selector, bool meta,
                     ObjcClass** owner = nullptr);
  std::uint64_t method_handle(ObjcMethod& method);
  ObjcMethod* method_at(std::uint64_t handle);

  std::uint64_t selector(std::string_view name);
  /// The text behind a selector; none if the address holds no text.
  std::optional<std::string> selector_name(std::uint64_t address) const;

  /// 0 when the arena is full. The origin gets an ordinal where it repeats.
  ObjcObject* create(ObjcClass& cls, std::string origin);
  /// Instances of classes that the program defines live on its heap.
  ObjcObject& adopt(ObjcClass& cls, std::uint64_t address, std::string origin);
  ObjcObject* object(std::uint64_t address);
  /// Constant text in the arena, NUL-terminated, one copy each.
  std::uint64_t text(std::string_view text);
  /// Zeroed bytes in the arena; 0 when it is full.
  std::uint64_t reserve(std::uint64_t size);
  bool full() const { return full_; }
  std::uint64_t used() const { return next_ - guest::objects; }

 private:
  Memory& memory_;
  std::uint64_t next_ = guest::objects + 0x100;
  bool full_ = false;
  ObjcClass* root_ = nullptr;
  std::deque<ObjcClass> classes_;
  std::map<std::string, ObjcClass*, std::less<>> by_name_;
  std::unordered_map<std::uint64_t, ObjcClass*> by_address_, by_meta_;
  std::unordered_map<std::uint64_t, ObjcMethod*> methods_;
  std::unordered_map<std::string, std::uint64_t> texts_;
  std::unordered_map<std::uint64_t, ObjcObject> objects_;
  std::unordered_map<std::string, std::uint64_t> origins_;
};

}  // namespace metaldoctor
