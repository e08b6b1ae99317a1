#include <fmt/format.h>

#include <array>

#include "scanners/code/findings.h"

namespace metaldoctor {
namespace {

constexpr std::array<std::string_view, 5> kArgumentKinds = {"none", "value", "set",
                                                            "base_plus_parameter", "unresolved"};
constexpr std::array<std::string_view, 5> kWhereKinds = {"branch", "select", "field", "global",
                                                         "returned"};

std::string hex(std::uint64_t address) {
  return fmt::format("{:#x}", address);
}

Json hex_list(const std::vector<std::uint64_t>& addresses) {
  Json out = Json::array();
  for (const std::uint64_t address : addresses) out.push_back(hex(address));
  return out;
}

std::string_view text(Certainty certainty) {
  return certainty == Certainty::certain ? "certain" : "likely";
}

/// Numbers beyond 2^53 are decimal strings in every document.
Json number(std::int64_t value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (value > kExact || value < -kExact) return std::to_string(value);
  return value;
}

/// Strings come from files of others: JSON wants UTF-8.
std::string utf8(std::string_view raw) {
  std::string out;
  for (const char c : raw) out += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return out;
}

Json texts(const std::vector<std::string>& list) {
  Json out = Json::array();
  for (const std::string& item : list) out.push_back(utf8(item));
  return out;
}

Json arguments(const SiteArguments& from) {
  Json out;
  out["kind"] = kArgumentKinds[static_cast<std::size_t>(from.kind)];
  if (!from.values.empty()) {
    out["values"] = Json::array();
    for (const std::int64_t value : from.values) out["values"].push_back(number(value));
  }
  if (from.kind == SiteArguments::Kind::base_plus_parameter) {
    out["base"] = number(from.base);
    out["parameter"] = from.parameter;
  }
  if (from.kind == SiteArguments::Kind::unresolved) out["reason"] = utf8(from.reason);
  return out;
}

Json site(const QuerySite& from) {
  Json out;
  out["id"] = from.id;
  out["addr"] = hex(from.address);
  out["function"] = utf8(from.function);
  out["function_addr"] = hex(from.function_address);
  out["route"] = to_string(from.route);
  out["tail_call"] = from.tail_call;
  out["selector"] = utf8(from.selector);
  out["query"] = utf8(from.query);
  if (!from.text.empty()) out["text"] = utf8(from.text);
  out["arguments"] = arguments(from.arguments);
  out["counts"] = from.counts;
  out["receiver"] = text(from.receiver);
  return out;
}

Json ladder(const Ladder& from) {
  Json out;
  out["query"] = from.query;
  out["first"] = number(from.first);
  out["last"] = number(from.last);
  out["addr"] = hex(from.address);
  out["function"] = utf8(from.function);
  out["sites"] = hex_list(from.sites);
  out["uses"] = texts(from.uses);
  out["readers"] = hex_list(from.readers);
  return out;
}

Json side(const GateSide& from) {
  Json out;
  out["ranges"] = Json::array();
  for (const auto& [begin, end] : from.ranges) out["ranges"].push_back({hex(begin), hex(end)});
  out["calls"] = texts(from.calls);
  out["selectors"] = texts(from.selectors);
  out["strings"] = texts(from.strings);
  return out;
}

Json gate(const Gate& from) {
  Json out;
  out["id"] = from.id;
  out["expr"] = utf8(from.expr);
  Json where;
  where["kind"] = kWhereKinds[static_cast<std::size_t>(from.where.kind)];
  where["addr"] = hex(from.where.address);
  if (from.where.kind == Gate::Where::Kind::field) {
    where["base"] = utf8(from.where.base);
    where["offset"] = number(from.where.offset);
  }
  out["where"] = std::move(where);
  out["function"] = utf8(from.function);
  out["function_addr"] = hex(from.function_address);
  out["sides"]["true"] = side(from.if_true);
  out["sides"]["false"] = side(from.if_false);
  out["certainty"] = text(from.certainty);
  out["stores"] = hex_list(from.stores);
  out["readers"] = hex_list(from.readers);
  out["feeds"] = texts(from.feeds);
  return out;
}

Json image(const Findings::ImageFacts& from) {
  Json out;
  out["path"] = utf8(from.path);
  if (!from.member.empty()) out["member"] = utf8(from.member);
  out["arch"] = from.arch;
  out["uuid"] = from.uuid;
  out["xxh3"] = fmt::format("{:016x}", from.xxh3);
  out["size"] = from.size;
  out["install_name"] = utf8(from.install_name);
  out["build"] = from.build;
  out["dylibs"] = texts(from.dylibs);
  out["encrypted"] = from.encrypted;
  return out;
}

Json signing(const Findings::Signing& from) {
  Json out;
  out["signed"] = from.is_signed;
  out["flags"] = hex(from.flags);
  out["adhoc"] = from.adhoc;
  out["linker_signed"] = from.linker_signed;
  out["hardened"] = from.hardened;
  out["library_validation"] = from.library_validation;
  out["cms"] = from.has_cms;
  out["identifier"] = utf8(from.identifier);
  out["team_id"] = utf8(from.team_id);
  out["entitlements"] = utf8(from.entitlements);
  out["entitlements_der"] = from.has_der;
  return out;
}

Json counts(const std::map<std::string, std::size_t>& from) {
  Json out = Json::object();
  for (const auto& [name, count] : from) out[utf8(name)] = count;
  return out;
}

template <typename T, typename Convert>
Json list(const std::vector<T>& from, const Convert& convert) {
  Json out = Json::array();
  for (const T& item : from) out.push_back(convert(item));
  return out;
}

}  // namespace

Json to_json(const Findings& findings) {
  Json out;
  out["schema"] = "metaldoctor.findings/1";
  out["image"] = image(findings.image);
  out["signing"] = signing(findings.signing);
  out["sites"] = list(findings.sites, site);
  out["ladders"] = list(findings.ladders, ladder);
  out["gates"] = list(findings.gates, gate);
  out["hidden"] = list(findings.hidden, [](const HiddenQuery& hidden) {
    return Json{{"selector", utf8(hidden.selector)}, {"reason", utf8(hidden.reason)}};
  });
  out["counted"] = counts(findings.counted);
  out["unproven"] = counts(findings.unproven);
  const auto totals = findings.totals();
  out["totals"] = {
      {"found", totals.found}, {"resolved", totals.resolved}, {"unresolved", totals.unresolved}};
  out["notes"] = texts(findings.notes);
  return out;
}

}  // namespace metaldoctor
