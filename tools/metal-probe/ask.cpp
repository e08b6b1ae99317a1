#include "tools/metal-probe/ask.h"

namespace metaldoctor::probe {
namespace {

struct Size {
  uint64_t width, height, depth;
};

bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

/// A type encoding without its frame offsets, cut to what fits: "B24@0:8q16" is "B@:q".
struct Shape {
  char text[24] = {};
  explicit Shape(const char* encoding) {
    size_t n = 0;
    for (; *encoding && n < sizeof(text) - 1; ++encoding) {
      if (*encoding < '0' || *encoding > '9') text[n++] = *encoding;
    }
  }
};

bool one_of(char c, const char* set) {
  for (; *set; ++set) {
    if (*set == c) return true;
  }
  return false;
}

constexpr char kSize[] = "{?=QQQ}@:";
constexpr char kNamedSize[] = "{_MTLSize=QQQ}@:";  // of some SDKs

/// Whether a method of this shape can be called as `query` is.
bool fits(const Shape& shape, const Query& query) {
  const char* text = shape.text;
  if (query.type == Type::structure) return same(text, kSize) || same(text, kNamedSize);
  const char* results = query.type == Type::boolean   ? "Bc"
                        : query.type == Type::integer ? "QqLlIi"
                                                      : "@";
  if (!one_of(text[0], results) || text[1] != '@' || text[2] != ':') return false;
  if (query.argument_count == 0) return text[3] == 0;
  return one_of(text[3], "QqLl") && text[4] == 0;
}

Size ask_size(Id device, Sel selector) {
#if defined(__x86_64__)
  return reinterpret_cast<Size (*)(Id, Sel)>(&objc_msgSend_stret)(device, selector);
#else
  return reinterpret_cast<Size (*)(Id, Sel)>(&objc_msgSend)(device, selector);
#endif
}

/// "architecture.name": the parts around the dot; without one the second is empty.
struct Path {
  char first[48] = {};
  const char* second = "";
  explicit Path(const char* selector) {
    size_t n = 0;
    for (; *selector && *selector != '.'; ++selector) first[n++] = *selector;
    if (*selector == '.') second = selector + 1;
  }
};

const char* utf8(Id string) {
  return string && responds(string, "UTF8String") ? send<const char*>(string, "UTF8String")
                                                  : nullptr;
}

}  // namespace

bool responds(Id object, const char* selector) {
  return send<bool>(object, "respondsToSelector:", sel_registerName(selector));
}

bool is_kind_of(Id object, const char* class_name) {
  for (objc_class* cls = object_getClass(object); cls; cls = class_getSuperclass(cls)) {
    if (same(class_getName(cls), class_name)) return true;
  }
  return false;
}

Reply ask(Id device, const Query& query, int64_t argument) {
  Reply reply;
  const Path path(query.selector);
  const Sel selector = sel_registerName(path.first);
  if (!responds(device, path.first)) {
    reply.problem = "the device has no such method";
    return reply;
  }
  objc_method* method = class_getInstanceMethod(object_getClass(device), selector);
  const char* types = method ? method_getTypeEncoding(method) : query.encoding;
  const Shape shape(types ? types : "");
  if (!fits(shape, query)) {
    reply.problem = "the method is encoded otherwise";
    return reply;
  }
  if (query.type == Type::structure) {
    const Size size = ask_size(device, selector);
    reply.size[0] = size.width;
    reply.size[1] = size.height;
    reply.size[2] = size.depth;
    return reply;
  }
  using Function = uint64_t (*)(Id, Sel, int64_t);
  const uint64_t raw = reinterpret_cast<Function>(&objc_msgSend)(device, selector, argument);
  if (query.type == Type::boolean) reply.integer = (raw & 0xff) != 0;
  if (query.type == Type::integer) {
    const bool narrow = one_of(shape.text[0], "Ii");
    reply.is_signed = one_of(shape.text[0], "qli");
    reply.integer = !narrow           ? raw
                    : reply.is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(raw)})
                                      : static_cast<uint32_t>(raw);
  }
  if (query.type != Type::text && query.type != Type::object) return reply;
  reply.object = reinterpret_cast<Id>(raw);
  if (query.type == Type::object) return reply;
  Id string = reply.object;
  if (*path.second) {
    string = string && responds(string, path.second) ? send(string, path.second) : nullptr;
  }
  reply.text = utf8(string);
  if (!reply.text) reply.problem = "the answer is nil";
  return reply;
}

}  // namespace metaldoctor::probe
