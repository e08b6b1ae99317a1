#include "scanners/code/vocabulary.h"

#include <algorithm>
#include <array>

namespace metaldoctor {
namespace {

struct AuxiliaryRow {
  std::string_view name;
  SelectorRole role;
  unsigned arguments = 0;
};
constexpr std::array kAuxiliary = {
    AuxiliaryRow{"maxTotalThreadsPerThreadgroup", SelectorRole::pipeline_getter},
    AuxiliaryRow{"threadExecutionWidth", SelectorRole::pipeline_getter},
    AuxiliaryRow{"staticThreadgroupMemoryLength", SelectorRole::pipeline_getter},
    AuxiliaryRow{"imageblockMemoryLengthForDimensions:", SelectorRole::pipeline_getter},
    AuxiliaryRow{"setLanguageVersion:", SelectorRole::compile, 1},
    AuxiliaryRow{"operatingSystemVersion", SelectorRole::os_version},
    AuxiliaryRow{"isOperatingSystemAtLeastVersion:", SelectorRole::os_version},
    AuxiliaryRow{"containsString:", SelectorRole::text_contains},
    AuxiliaryRow{"localizedCaseInsensitiveContainsString:", SelectorRole::text_contains},
    AuxiliaryRow{"isEqualToString:", SelectorRole::text_equals},
    AuxiliaryRow{"isEqual:", SelectorRole::text_equals},
    AuxiliaryRow{"UTF8String", SelectorRole::text_view},
    AuxiliaryRow{"objectAtIndex:", SelectorRole::element},
    AuxiliaryRow{"objectAtIndexedSubscript:", SelectorRole::element},
    AuxiliaryRow{"respondsToSelector:", SelectorRole::responds},
    AuxiliaryRow{"instancesRespondToSelector:", SelectorRole::responds},
    AuxiliaryRow{"hasPrefix:", SelectorRole::text_other},
    AuxiliaryRow{"hasSuffix:", SelectorRole::text_other},
    AuxiliaryRow{"rangeOfString:", SelectorRole::text_other},
    AuxiliaryRow{"firstObject", SelectorRole::element},
    AuxiliaryRow{"lastObject", SelectorRole::element},
};

struct FunctionRow {
  std::string_view name;
  FunctionRole role;
};
constexpr std::array kFunctions = {
    FunctionRow{"_MTLCreateSystemDefaultDevice", FunctionRole::device},
    FunctionRow{"_CGDirectDisplayCopyCurrentMetalDevice", FunctionRole::device},
    FunctionRow{"_MTLCopyAllDevices", FunctionRole::device_list},
    FunctionRow{"_MTLCopyAllDevicesWithObserver", FunctionRole::device_list},
    FunctionRow{"_getenv", FunctionRole::environment},
    FunctionRow{"_objc_msgSend", FunctionRole::message},
    FunctionRow{"_objc_msgSend_stret", FunctionRole::message_structure},
    FunctionRow{"_sel_registerName", FunctionRole::register_selector},
    FunctionRow{"_sel_getUid", FunctionRole::register_selector},
    FunctionRow{"_dlsym", FunctionRole::look_up},
    FunctionRow{"_malloc", FunctionRole::allocator},
    FunctionRow{"__Znwm", FunctionRole::allocator},
    FunctionRow{"__Znam", FunctionRole::allocator},
    FunctionRow{"_objc_retain", FunctionRole::same_object},
    FunctionRow{"_objc_autorelease", FunctionRole::same_object},
    FunctionRow{"_objc_retainAutorelease", FunctionRole::same_object},
    FunctionRow{"_objc_autoreleaseReturnValue", FunctionRole::same_object},
    FunctionRow{"_objc_retainAutoreleaseReturnValue", FunctionRole::same_object},
    FunctionRow{"_objc_retainAutoreleasedReturnValue", FunctionRole::same_object},
    FunctionRow{"_objc_unsafeClaimAutoreleasedReturnValue", FunctionRole::same_object},
    FunctionRow{"_objc_claimAutoreleasedReturnValue", FunctionRole::same_object},
    FunctionRow{"___isPlatformVersionAtLeast", FunctionRole::os_version},
    FunctionRow{"___isOSVersionAtLeast", FunctionRole::os_version},
    FunctionRow{"_class_respondsToSelector", FunctionRole::responds},
    FunctionRow{"_sysctlbyname", FunctionRole::host_name},
    FunctionRow{"_IOServiceMatching", FunctionRole::host},
    FunctionRow{"_IOServiceGetMatchingService", FunctionRole::host},
    FunctionRow{"_IOServiceGetMatchingServices", FunctionRole::host},
    FunctionRow{"_IORegistryEntryIDMatching", FunctionRole::host},
    FunctionRow{"_IORegistryEntryGetParentEntry", FunctionRole::host},
    FunctionRow{"_IORegistryEntrySearchCFProperty", FunctionRole::host},
    FunctionRow{"_IORegistryEntryCreateCFProperty", FunctionRole::host},
    FunctionRow{"_strcmp", FunctionRole::text_equals},
    FunctionRow{"_strncmp", FunctionRole::text_other},
    FunctionRow{"_strcasecmp", FunctionRole::text_other},
    FunctionRow{"_strstr", FunctionRole::text_contains},
    FunctionRow{"_abort", FunctionRole::no_return},
    FunctionRow{"_exit", FunctionRole::no_return},
    FunctionRow{"__exit", FunctionRole::no_return},
    FunctionRow{"___stack_chk_fail", FunctionRole::no_return},
    FunctionRow{"___assert_rtn", FunctionRole::no_return},
    FunctionRow{"___cxa_throw", FunctionRole::no_return},
    FunctionRow{"___cxa_rethrow", FunctionRole::no_return},
    FunctionRow{"___cxa_bad_cast", FunctionRole::no_return},
    FunctionRow{"__Unwind_Resume", FunctionRole::no_return},
    FunctionRow{"__ZSt9terminatev", FunctionRole::no_return},
    FunctionRow{"_objc_exception_throw", FunctionRole::no_return},
    FunctionRow{"_objc_terminate", FunctionRole::no_return},
};

constexpr std::array<std::string_view, 12> kAmbiguous = {
    "name",        "location",  "locationNumber", "index",    "architecture", "architecture.name",
    "isRemovable", "removable", "isHeadless",     "headless", "peerIndex",    "peerCount",
};

unsigned argument_count(std::string_view selector) {
  return static_cast<unsigned>(std::count(selector.begin(), selector.end(), ':'));
}

}  // namespace

Vocabulary::Vocabulary(std::vector<Selector> selectors, std::vector<Function> functions)
    : selectors_(std::move(selectors)), functions_(std::move(functions)) {
  for (std::uint32_t i = 0; i < selectors_.size(); ++i)
    selector_index_.emplace(selectors_[i].name, i);
  for (std::uint32_t i = 0; i < functions_.size(); ++i)
    function_index_.emplace(functions_[i].name, i);
}

const Selector* Vocabulary::selector(std::string_view name) const {
  const auto found = selector_index_.find(name);
  return found == selector_index_.end() ? nullptr : &selectors_[found->second];
}

const Function* Vocabulary::function(std::string_view name) const {
  const auto found = function_index_.find(name);
  return found == function_index_.end() ? nullptr : &functions_[found->second];
}

bool is_ambiguous_selector(std::string_view name) {
  return std::find(kAmbiguous.begin(), kAmbiguous.end(), name) != kAmbiguous.end();
}

std::vector<Selector> auxiliary_selectors() {
  std::vector<Selector> out;
  for (const AuxiliaryRow& row : kAuxiliary)
    out.push_back({std::string(row.name), row.role, std::string(row.name), row.arguments,
                   AnswerType::integer, false});
  return out;
}

std::vector<Function> known_functions() {
  std::vector<Function> out;
  for (const FunctionRow& row : kFunctions) out.push_back({std::string(row.name), row.role});
  return out;
}

Vocabulary vocabulary(const Tables& tables) {
  std::vector<Selector> selectors = auxiliary_selectors();
  const std::size_t own = selectors.size();
  const auto is_own = [&](std::string_view name) {
    return std::any_of(selectors.begin(), selectors.begin() + static_cast<std::ptrdiff_t>(own),
                       [&](const Selector& row) { return row.name == name; });
  };
  const auto add = [&](const Query& query, std::string_view name) {
    if (is_own(name) || name.find('.') != std::string_view::npos) return;
    selectors.push_back({std::string(name), SelectorRole::query, query.selector,
                         query.argument.empty() ? 0 : argument_count(name), query.type,
                         is_ambiguous_selector(name)});
  };
  for (const Query& query : tables.queries()) {
    add(query, query.selector);
    for (const std::string& alias : query.aliases) add(query, alias);
  }
  // The object behind architecture.name; its name is the query.
  selectors.push_back(
      {"architecture", SelectorRole::query, "architecture", 0, AnswerType::object, true});
  return {std::move(selectors), known_functions()};
}

}  // namespace metaldoctor
