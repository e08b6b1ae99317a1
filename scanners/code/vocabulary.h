#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tables/tables.h"

namespace metaldoctor {

/// What a selector means to the audit.
enum class SelectorRole : std::uint8_t {
  query,            ///< asks a device; `Selector::query` is the canonical name
  pipeline_getter,  ///< asks a pipeline state; counted, not listed
  compile,          ///< setLanguageVersion: a site, but no question to the device
  os_version,       ///< asks for the OS version
  text_contains,    ///< BOOL: receiver contains the argument
  text_equals,      ///< BOOL: receiver equals the argument
  text_other,       ///< compares in some other way (a prefix ...): listed, not followed
  text_view,        ///< gives the receiver's text in another form (UTF8String, lowercaseString)
  element,          ///< gives one object of a collection
  responds,         ///< asks whether an object has a method; the argument is a selector
};

struct Selector {
  std::string name;  ///< as it is sent
  SelectorRole role = SelectorRole::query;
  std::string query;               ///< canonical query; equal to name for other roles
  unsigned integer_arguments = 0;  ///< in x2, x3 ...: what findings list
  AnswerType answer = AnswerType::boolean;
  /// Other classes answer it too (name, location ...): a query only if the receiver is a device.
  bool ambiguous = false;
};

/// What a C function means to the audit.
enum class FunctionRole : std::uint8_t {
  other,
  device,             ///< returns a device
  device_list,        ///< returns an array of devices
  environment,        ///< getenv
  message,            ///< objc_msgSend: receiver, selector, arguments
  message_structure,  ///< objc_msgSend_stret (x86-64): the result's address comes first
  register_selector,  ///< sel_registerName, sel_getUid: x0 text, returns the selector
  look_up,            ///< dlsym: handle, name; returns the function
  responds,           ///< class_respondsToSelector: class, selector
  host_name,          ///< sysctlbyname: asks for what is named
  host,               ///< IOKit and the like: asks the host about its hardware
  allocator,          ///< malloc, operator new
  same_object,        ///< returns its argument: objc_retain ...
  os_version,         ///< __isPlatformVersionAtLeast: BOOL
  no_return,          ///< abort ...
  text_equals,        ///< strcmp: 0 if equal
  text_contains,      ///< strstr: null if not
  text_other,         ///< strncmp ...: listed, not followed
};

struct Function {
  std::string name;  ///< with the leading underscore
  FunctionRole role = FunctionRole::other;
};

/// What the audit looks for: plain data, so that the scanner can be tested without tables.
class Vocabulary {
 public:
  Vocabulary(std::vector<Selector> selectors, std::vector<Function> functions);

  const Selector* selector(std::string_view name) const;
  const Function* function(std::string_view name) const;
  const std::vector<Selector>& selectors() const { return selectors_; }

 private:
  std::vector<Selector> selectors_;
  std::vector<Function> functions_;
  std::unordered_map<std::string_view, std::uint32_t> selector_index_, function_index_;
};

/// Every query of the tables with its aliases, and the selectors and C functions that the audit
/// itself needs (text tests, retain, getenv ...).
Vocabulary vocabulary(const Tables& tables);
/// What vocabulary() adds to the tables' queries.
std::vector<Selector> auxiliary_selectors();
std::vector<Function> known_functions();
/// True for a selector that classes other than devices answer as well.
bool is_ambiguous_selector(std::string_view name);

}  // namespace metaldoctor
