#include "scanners/code/sites.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {
namespace {

SiteArguments arguments_of(const FunctionTrace& trace, const CallEvent& event) {
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

SiteKind site_kind(const CallEvent& event) {
  const Target& target = *event.target;
  if (!target.selector) {
    const FunctionRole role = target.function->role;
    const bool device = role == FunctionRole::device || role == FunctionRole::device_list;
    return {device ? SiteKind::Kind::site : SiteKind::Kind::none, {}};
  }
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
    default:
      return {};
  }
}

QuerySite make_site(const FunctionTrace& trace, const CallEvent& event, const std::string& image,
                    const std::string& arch) {
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
  if (!target.selector) return site;
  site.arguments = arguments_of(trace, event);
  site.counts =
      target.selector->role == SelectorRole::query && target.selector->integer_arguments > 0;
  return site;
}

}  // namespace metaldoctor
