#include "scanners/code/sites.h"

#include <fmt/format.h>

#include <algorithm>

#include "scanners/code/tables_in_code.h"

namespace metaldoctor {
namespace {

SiteArguments arguments_of(const Program& program, const FunctionTrace& trace,
                           const CallEvent& event) {
  SiteArguments out;
  const std::size_t count =
      std::min<std::size_t>(event.target->selector->integer_arguments, event.arguments.size() - 2);
  for (std::size_t i = 0; i < count; ++i) {
    const AbstractValue& value = event.arguments[2 + i];
    if (is_number(value)) {
      out.kind = SiteArguments::Kind::value;
      out.values.push_back(value.offset);
      continue;
    }
    if (value.kind == AbstractValue::Kind::set && count == 1) {
      out.kind = SiteArguments::Kind::set;
      out.values = trace.values.set(value.id);
    } else if (is_based(value) && trace.values.base(value.base).kind == Base::Kind::parameter) {
      out.kind = SiteArguments::Kind::base_plus_parameter;
      out.base = value.offset;
      out.parameter = static_cast<unsigned>(trace.values.base(value.base).at);
      out.from_caller = true;
    } else if (const auto walk = table_walk(trace, value)) {
      if (auto elements = walked_elements(program, trace, *walk); elements && count == 1) {
        out.kind = SiteArguments::Kind::set;
        std::sort(elements->begin(), elements->end());
        elements->erase(std::unique(elements->begin(), elements->end()), elements->end());
        out.values = std::move(*elements);
        break;
      }
      out.kind = SiteArguments::Kind::unresolved;
      out.reason = walk->parameter
                       ? fmt::format("elements of the table at parameter {}", *walk->parameter)
                       : fmt::format("elements of the table at {:#x}", walk->address);
      out.from_caller = walk->parameter.has_value();
    } else if (event.table) {
      out.kind = SiteArguments::Kind::unresolved;
      out.reason = fmt::format("elements of the table at parameter {}", *event.table->parameter);
      out.from_caller = true;
    } else {
      out.kind = SiteArguments::Kind::unresolved;
      out.reason = is_based(value) ? trace.values.describe(value.base)
                                   : "computed, or different on different paths";
    }
    break;
  }
  return out;
}

}  // namespace

namespace {

/// What programs ask the host instead of the device: the model, the processor, the system.
bool is_host_question(std::string_view name) {
  return name.starts_with("hw.") || name.starts_with("machdep.cpu.") ||
         name.starts_with("kern.os") || name.starts_with("kern.hv");
}

SiteKind function_kind(const CallEvent& event) {
  constexpr SiteKind kSite{SiteKind::Kind::site, {}};
  switch (event.target->function->role) {
    case FunctionRole::device:
    case FunctionRole::device_list:
    case FunctionRole::host:
      return kSite;
    case FunctionRole::host_name:
      return is_host_question(event.text) ? kSite : SiteKind{};
    case FunctionRole::responds:
    case FunctionRole::text_equals:
    case FunctionRole::text_contains:
    case FunctionRole::text_other:
      return event.text.empty() ? SiteKind{} : kSite;
    case FunctionRole::os_version:
      return event.about.empty() ? SiteKind{} : kSite;
    default:
      return {};
  }
}

}  // namespace

SiteKind site_kind(const CallEvent& event) {
  const Target& target = *event.target;
  if (!target.selector) return function_kind(event);
  switch (target.selector->role) {
    case SelectorRole::pipeline_getter:
      // Calls of stubs were counted by the words already.
      if (event.route == Route::stub || event.route == Route::symbol) return {};
      return {SiteKind::Kind::counted, target.selector->query};
    case SelectorRole::query:
      if (target.selector->ambiguous && !event.receiver_is_device && event.expr == kNoExpr)
        return {SiteKind::Kind::unproven, target.selector->name};
      return {SiteKind::Kind::site, {}};
    case SelectorRole::compile:
    case SelectorRole::os_version:
      return {SiteKind::Kind::site, {}};
    case SelectorRole::responds:
    case SelectorRole::text_contains:
    case SelectorRole::text_equals:
    case SelectorRole::text_other:
      return {event.text.empty() ? SiteKind::Kind::none : SiteKind::Kind::site, {}};
    default:
      return {};
  }
}

QuerySite make_site(const Program& program, const FunctionTrace& trace, const CallEvent& event,
                    const std::string& image, const std::string& arch) {
  const Target& target = *event.target;
  QuerySite site;
  site.address = event.address;
  site.id = fmt::format("{}:{}:{:x}", image, arch, event.address);
  site.function_address = trace.function;
  site.route = event.route;
  site.tail_call = event.tail;
  site.selector = std::string(target.name);
  site.query = target.selector ? target.selector->query : std::string(target.name);
  site.receiver = event.receiver_is_device ? Certainty::certain : Certainty::likely;
  site.text = std::string(event.text);
  if (target.function && target.function->role == FunctionRole::os_version)
    site.text = event.about;
  else if (!event.about.empty())
    site.query = event.about;  // the answer that is compared
  if (!target.selector) return site;
  site.arguments = arguments_of(program, trace, event);
  site.counts =
      target.selector->role == SelectorRole::query && target.selector->integer_arguments > 0;
  return site;
}

}  // namespace metaldoctor
