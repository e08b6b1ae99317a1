#include <fmt/format.h>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"
#include "scanners/simulator/foundation.h"

namespace metaldoctor {
namespace {

// ---- messages

void do_send(Call& call) {
  if (call.arg(0) == 0) {
    call.returns_real(0);
    return call.returns_pair(0, 0);  // nil answers nothing to everything
  }
  dispatch_message(call, nullptr);
}
void do_send_stret(Call& outer) {
  Call call(outer.process, outer.trap, 1);
  if (call.arg(0) == 0) {
    const auto selector = call.process.objc.selector_name(call.arg(1)).value_or("");
    return call.process.assume(fmt::format("{} to nil left its structure as it was", selector));
  }
  dispatch_message(call, nullptr);
  if (call.jumped()) outer.jump(call.process.machine.pc());
}
/// struct objc_super {receiver, class}: the search begins above the class.
void do_send_super(Call& call) {
  const std::uint64_t pair = call.arg(0);
  ObjcClass* cls = call.process.objc.class_at(call.load<std::uint64_t>(pair + 8));
  const bool above = call.trap.name == "_objc_msgSendSuper2";
  call.set_arg(0, call.load<std::uint64_t>(pair));
  if (cls && above) cls = cls->superclass;
  if (!cls) return call.fault("has no superclass", pair);
  dispatch_message(call, cls);
}
void send_fixed(Call& call, std::string_view selector) {
  if (call.arg(0) == 0) return call.returns(0);
  call.returns(call.process.send(call.arg(0), selector, {}, SystemLibrary::objc));
}
void do_alloc(Call& call) {
  send_fixed(call, "alloc");
}
void do_alloc_init(Call& call) {
  const std::uint64_t made = call.process.send(call.arg(0), "alloc", {}, SystemLibrary::objc);
  call.returns(made ? call.process.send(made, "init", {}, SystemLibrary::objc) : 0);
}
void do_opt_new(Call& call) {
  send_fixed(call, "new");
}
void do_opt_self(Call& call) {
  call.returns(call.arg(0));
}
void do_opt_class(Call& call) {
  send_fixed(call, "class");
}
void do_opt_responds(Call& call) {
  const auto selector = call.process.objc.selector_name(call.arg(1));
  call.returns(call.arg(0) && selector && responds(call.process, call.arg(0), *selector));
}
void do_opt_kind(Call& call) {
  if (call.arg(0) == 0) return call.returns(0);
  call.returns(
      call.process.send(call.arg(0), "isKindOfClass:", {call.arg(1)}, SystemLibrary::objc));
}
void do_store(Call& call) {  // objc_storeStrong, objc_initWeak, objc_storeWeak
  call.store(call.arg(0), call.arg(1));
  call.returns(call.arg(1));
}
void do_load_weak(Call& call) {
  call.returns(call.load<std::uint64_t>(call.arg(0)));
}
void do_enumeration_mutation(Call& call) {
  call.process.stop("abort", "a collection was changed while it was enumerated",
                    call.process.caller());
}

// ---- classes

ObjcClass* class_argument(Call& call, unsigned index = 0) {
  return call.process.objc.class_at(call.arg(index));
}
std::optional<std::string> selector_argument(Call& call, unsigned index) {
  return call.process.objc.selector_name(call.arg(index));
}
/// A class object or metaclass means instance or class methods.
auto& methods_of(Call& call, ObjcClass& cls) {
  bool meta = false;
  call.process.objc.class_at(call.arg(0), &meta);
  return meta ? cls.class_methods : cls.methods;
}

void do_get_class(Call& call) {
  if (call.arg(0) == 0) return call.returns(0);
  const ObjcClass* cls = call.process.objc.find(call.text(0));
  call.returns(cls ? cls->address : 0);
}
void do_get_metaclass(Call& call) {
  const ObjcClass* cls = call.process.objc.find(call.text(0));
  call.returns(cls ? cls->meta : 0);
}
void do_object_get_class(Call& call) {
  if (call.arg(0) == 0) return call.returns(0);
  bool is_class = false, meta = false;
  const ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  if (!cls) return call.fault("is no object", call.arg(0));
  if (is_class) call.process.objc.class_at(call.arg(0), &meta);
  call.returns(is_class && !meta ? cls->meta : cls->address);
}
void do_object_class_name(Call& call) {
  bool is_class = false;
  const ObjcClass* cls = call.arg(0) ? class_of(call.process, call.arg(0), is_class) : nullptr;
  call.returns(call.process.objc.text(cls ? cls->name : "nil"));
}
void do_object_is_class(Call& call) {
  call.returns(call.process.objc.class_at(call.arg(0)) != nullptr);
}
void do_class_name(Call& call) {
  const ObjcClass* cls = class_argument(call);
  call.returns(call.process.objc.text(cls ? cls->name : "nil"));
}
void do_superclass(Call& call) {
  const ObjcClass* cls = class_argument(call);
  call.returns(cls && cls->superclass ? cls->superclass->address : 0);
}
void do_is_metaclass(Call& call) {
  bool meta = false;
  call.process.objc.class_at(call.arg(0), &meta);
  call.returns(meta);
}
void do_image_name(Call& call) {
  const ObjcClass* cls = class_argument(call);
  if (!cls) return call.returns(0);
  const SimLoaded* image = call.process.images.at(cls->address);
  call.returns(call.process.objc.text(image ? image->path : cls->image));
}
void do_responds(Call& call) {
  ObjcClass* cls = class_argument(call);
  const auto selector = selector_argument(call, 1);
  bool meta = false;
  call.process.objc.class_at(call.arg(0), &meta);
  call.returns(cls && selector && call.process.objc.lookup(*cls, *selector, meta));
}
void do_conforms(Call& call) {
  const ObjcClass* cls = class_argument(call);
  const ObjcObject* protocol = call.process.objc.object(call.arg(1));
  bool found = false;
  for (; cls && protocol && !found; cls = cls->superclass)
    found = std::ranges::find(cls->protocols, protocol->text.value_or("")) != cls->protocols.end();
  call.returns(found);
}
void do_get_protocol(Call& call) {
  const std::string name = call.text(0);
  ObjcObject* made = call.process.new_object("Protocol", "protocol " + name);
  made->text = name;
  call.returns(made->address);
}

// ---- methods

ObjcMethod* method_argument(Call& call) {
  if (call.arg(0) == 0) return nullptr;
  ObjcMethod* method = call.process.objc.method_at(call.arg(0));
  if (!method) call.fault("is no Method", call.arg(0));
  return method;
}
void find_method(Call& call, bool meta) {
  ObjcClass* cls = class_argument(call);
  const auto selector = selector_argument(call, 1);
  bool is_meta = false;
  call.process.objc.class_at(call.arg(0), &is_meta);
  ObjcMethod* found =
      cls && selector ? call.process.objc.lookup(*cls, *selector, meta || is_meta) : nullptr;
  call.returns(found ? call.process.objc.method_handle(*found) : 0);
}
void do_instance_method(Call& call) {
  find_method(call, false);
}
void do_class_method(Call& call) {
  find_method(call, true);
}
void do_method_implementation(Call& call) {
  ObjcClass* cls = class_argument(call);
  const auto selector = selector_argument(call, 1);
  if (!cls || !selector) return call.returns(0);
  bool meta = false;
  call.process.objc.class_at(call.arg(0), &meta);
  ObjcMethod* found = call.process.objc.lookup(*cls, *selector, meta);
  call.returns(found ? found->imp : call.process.symbol_address("__objc_msgForward"));
}
void do_get_implementation(Call& call) {
  const ObjcMethod* method = method_argument(call);
  call.returns(method ? method->imp : 0);
}
void do_set_implementation(Call& call) {
  ObjcMethod* method = method_argument(call);
  if (!method || call.arg(1) == 0) return call.returns(0);
  call.returns(std::exchange(method->imp, call.arg(1)));
}
void do_exchange(Call& call) {
  ObjcMethod* first = method_argument(call);
  ObjcMethod* second = call.process.objc.method_at(call.arg(1));
  if (first && second) std::swap(first->imp, second->imp);
}
void do_encoding(Call& call) {
  const ObjcMethod* method = method_argument(call);
  call.returns(method ? call.process.objc.text(method->types) : 0);
}
void do_method_name(Call& call) {
  const ObjcMethod* method = method_argument(call);
  call.returns(method ? call.process.objc.selector(method->selector) : 0);
}
void do_copy_return_type(Call& call) {
  const ObjcMethod* method = method_argument(call);
  if (!method) return call.returns(0);
  const std::string type = method->types.substr(0, method->types.find_first_of("0123456789"));
  call.returns(call.process.allocate_text(type));
}
std::string types_argument(Call& call) {
  return call.arg(3) ? call.text(3) : std::string{};
}
void do_add_method(Call& call) {
  ObjcClass* cls = class_argument(call);
  const auto selector = selector_argument(call, 1);
  if (!cls || !selector || call.arg(2) == 0) return call.returns(0);
  ObjcMethod method{*selector, types_argument(call), call.arg(2), 0, 0};
  call.returns(methods_of(call, *cls).emplace(*selector, std::move(method)).second);
}
/// Replaces the class's own method or adds one; the old implementation, 0 if it was added.
void do_replace_method(Call& call) {
  ObjcClass* cls = class_argument(call);
  const auto selector = selector_argument(call, 1);
  if (!cls || !selector || call.arg(2) == 0) return call.returns(0);
  auto& methods = methods_of(call, *cls);
  const auto own = methods.find(*selector);
  if (own != methods.end()) return call.returns(std::exchange(own->second.imp, call.arg(2)));
  methods.emplace(*selector, ObjcMethod{*selector, types_argument(call), call.arg(2), 0, 0});
  call.returns(0);
}
void do_copy_method_list(Call& call) {
  ObjcClass* cls = class_argument(call);
  const std::uint64_t count_at = call.arg(1);
  auto* methods = cls ? &methods_of(call, *cls) : nullptr;
  const std::uint64_t count = methods ? methods->size() : 0;
  if (count_at) call.store(count_at, static_cast<std::uint32_t>(count));
  if (count == 0) return call.returns(0);
  const std::uint64_t list = call.process.allocate((count + 1) * 8);
  std::uint64_t at = list;
  for (auto& [name, method] : *methods) {
    call.store(at, call.process.objc.method_handle(method));
    at += 8;
  }
  call.store<std::uint64_t>(at, 0);
  call.returns(list);
}

// ---- selectors

void do_register_selector(Call& call) {
  if (call.arg(0) == 0) return call.returns(0);
  call.returns(call.process.objc.selector(call.text(0)));
}
void do_selector_name(Call& call) {
  call.returns(call.arg(0) ? call.arg(0) : call.process.objc.text("<null selector>"));
}
void do_selector_equal(Call& call) {
  call.returns(call.arg(0) == call.arg(1));
}
void do_autorelease_push(Call& call) {
  call.returns(1);
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;

constexpr HostFunction functions[] = {
    {"_objc_msgSend", exact, do_send},
    {"_objc_msgSend_stret", exact, do_send_stret},
    {"_objc_msgSend_fpret", exact, do_send},
    {"_objc_msgSendSuper", exact, do_send_super},
    {"_objc_msgSendSuper2", exact, do_send_super},
    {"_objc_alloc", exact, do_alloc},
    {"_objc_allocWithZone", exact, do_alloc},
    {"_objc_alloc_init", exact, do_alloc_init},
    {"_objc_opt_new", exact, do_opt_new},
    {"_objc_opt_self", exact, do_opt_self},
    {"_objc_opt_class", exact, do_opt_class},
    {"_objc_opt_respondsToSelector", exact, do_opt_responds},
    {"_objc_opt_isKindOfClass", exact, do_opt_kind},
    {"_objc_retain", exact, do_opt_self},
    {"_objc_autorelease", exact, do_opt_self},
    {"_objc_retainAutorelease", exact, do_opt_self},
    {"_objc_autoreleaseReturnValue", exact, do_opt_self},
    {"_objc_retainAutoreleaseReturnValue", exact, do_opt_self},
    {"_objc_retainAutoreleasedReturnValue", exact, do_opt_self},
    {"_objc_unsafeClaimAutoreleasedReturnValue", exact, do_opt_self},
    {"_objc_claimAutoreleasedReturnValue", exact, do_opt_self},
    {"_objc_release", constant},
    {"_objc_storeStrong", exact, do_store},
    {"_objc_initWeak", exact, do_store},
    {"_objc_storeWeak", exact, do_store},
    {"_objc_loadWeakRetained", exact, do_load_weak},
    {"_objc_loadWeak", exact, do_load_weak},
    {"_objc_destroyWeak", constant},
    {"_objc_autoreleasePoolPush", constant, do_autorelease_push},
    {"_objc_autoreleasePoolPop", constant},
    {"_objc_sync_enter", constant},
    {"_objc_sync_exit", constant},
    {"_objc_enumerationMutation", exact, do_enumeration_mutation},
    {"_objc_getClass", exact, do_get_class},
    {"_objc_lookUpClass", exact, do_get_class},
    {"_objc_getRequiredClass", exact, do_get_class},
    {"_objc_getMetaClass", exact, do_get_metaclass},
    {"_objc_getProtocol", exact, do_get_protocol},
    {"_object_getClass", exact, do_object_get_class},
    {"_object_getClassName", exact, do_object_class_name},
    {"_object_isClass", exact, do_object_is_class},
    {"_class_getName", exact, do_class_name},
    {"_class_getSuperclass", exact, do_superclass},
    {"_class_isMetaClass", exact, do_is_metaclass},
    {"_class_getImageName", exact, do_image_name},
    {"_class_respondsToSelector", exact, do_responds},
    {"_class_conformsToProtocol", exact, do_conforms},
    {"_class_getInstanceMethod", exact, do_instance_method},
    {"_class_getClassMethod", exact, do_class_method},
    {"_class_getMethodImplementation", exact, do_method_implementation},
    {"_class_addMethod", exact, do_add_method},
    {"_class_replaceMethod", exact, do_replace_method},
    {"_class_copyMethodList", exact, do_copy_method_list},
    {"_method_getImplementation", exact, do_get_implementation},
    {"_method_setImplementation", exact, do_set_implementation},
    {"_method_exchangeImplementations", exact, do_exchange},
    {"_method_getTypeEncoding", exact, do_encoding},
    {"_method_getName", exact, do_method_name},
    {"_method_copyReturnType", exact, do_copy_return_type},
    {"_sel_registerName", exact, do_register_selector},
    {"_sel_getUid", exact, do_register_selector},
    {"_sel_getName", exact, do_selector_name},
    {"_sel_isEqual", exact, do_selector_equal},
};

}  // namespace

std::span<const HostFunction> objc_functions() {
  return functions;
}

}  // namespace metaldoctor
