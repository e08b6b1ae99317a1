#include "tools/render/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace metaldoctor {
namespace {

constexpr std::string_view kSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
// A path of the tables has a rule of its own; gates without a name share one.
constexpr std::string_view kUnnamed = "probe-dependent-branch";

bool is_named(const Path& path) {
  return path.id.find('@') != path.id.npos;
}

std::string rule_of(const Path& path) {
  return is_named(path) ? path.id : std::string(kUnnamed);
}

/// RFC 3986: what may not stand in a URI is percent-encoded.
std::string uri_of(std::string_view path) {
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/@+").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return uri;
}

Json location_of(const Findings& findings, const Gate* gate) {
  Json location = {
      {"physicalLocation", {{"artifactLocation", {{"uri", uri_of(findings.image.path)}}}}}};
  if (gate == nullptr) return location;
  location["physicalLocation"]["address"] = {
      {"absoluteAddress", gate->where.address}, {"kind", "instruction"}, {"name", gate->id}};
  location["logicalLocations"] =
      Json::array({Json{{"name", gate->function}, {"kind", "function"}}});
  return location;
}

Json result_of(const Findings& findings, const BranchComparison& comparison, const Branch& branch) {
  const Path& path = branch.path;
  Json result = {
      {"ruleId", rule_of(path)},
      {"level", branch.is_worse ? "warning" : "note"},
      {"message",
       {{"text",
         fmt::format("{}: {} on {}, {} on {}. {}{}", path.id, to_string(branch.first),
                     comparison.first, to_string(branch.second), comparison.second, path.opens,
                     branch.because.empty()
                         ? ""
                         : fmt::format(". Because {}", fmt::join(branch.because, "; ")))}}}};
  Json locations = Json::array();
  for (const Gate& gate : findings.gates) {
    if (std::ranges::find(path.gates, gate.id) != path.gates.end()) {
      locations.push_back(location_of(findings, &gate));
    }
  }
  if (locations.empty()) locations.push_back(location_of(findings, nullptr));
  // A result's locations are those that must all be mended; the other places are related to it.
  result["locations"] = Json::array({locations.front()});
  locations.erase(0);
  if (!locations.empty()) result["relatedLocations"] = std::move(locations);
  result["partialFingerprints"] = {
      {"path/v1", fmt::format("{}:{}", findings.image.arch, path.predicate.print())}};
  result["properties"] = {{"evidence", to_string(path.evidence)}, {"arch", findings.image.arch}};
  return result;
}

Json rule_json(const std::string& id, const Path& path) {
  const std::string text =
      is_named(path) ? path.opens : "Code that hangs on what the Metal device answers";
  return {{"id", id},
          {"shortDescription", {{"text", text.empty() ? id : text}}},
          {"help", {{"text", "metaldoctor recommend names the answers that open it"}}}};
}

}  // namespace

Json sarif_document(const std::vector<SarifImage>& images, std::string_view version) {
  std::map<std::string, Json> rules;
  Json results = Json::array();
  for (const SarifImage& image : images) {
    for (const Branch& branch : image.comparison->branches) {
      if (!branch.differs) continue;
      const std::string rule = rule_of(branch.path);
      rules.try_emplace(rule, rule_json(rule, branch.path));
      results.push_back(result_of(*image.findings, *image.comparison, branch));
    }
  }
  Json rule_list = Json::array();
  for (auto& [id, rule] : rules) rule_list.push_back(std::move(rule));
  const Json driver = {
      {"name", "metaldoctor"}, {"version", version}, {"rules", std::move(rule_list)}};
  const Json run = {{"tool", {{"driver", driver}}}, {"results", std::move(results)}};
  return {{"$schema", kSchema}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
}

}  // namespace metaldoctor
