#include "tools/metaldoctor/audit_merge.h"

#include <set>

#include "tools/metaldoctor/files.h"

namespace metaldoctor {
namespace {

/// What tells one image from another, wherever it lay.
std::string identity(const Json& image) {
  const Json& from = image.at("findings").at("image");
  std::string out;
  for (const char* field : {"uuid", "xxh3", "arch", "member"}) {
    out += from.value(field, std::string()) + '\n';
  }
  return out;
}

void add_counts(const Json& from, Json& into) {
  for (const auto& [name, count] : from.items()) {
    into[name] = into.value(name, std::uint64_t{0}) + count.get<std::uint64_t>();
  }
}

}  // namespace

Result<Json> merge_audits(const std::vector<std::string>& paths) {
  Json out = {{"schema", "metaldoctor.audit/1"}, {"images", Json::array()}};
  Json tree = Json::object();
  std::set<std::string> seen;
  std::uint64_t copies = 0;
  for (const std::string& path : paths) {
    const auto text = read_file(path, std::size_t{1} << 30);
    if (!text) return tl::unexpected(text.error());
    DocumentLimits limits;
    limits.bytes = std::size_t{1} << 30;
    limits.values = 100'000'000;
    auto document = parse_json(*text, path, limits);
    if (!document) return tl::unexpected(document.error());
    if (auto valid = validate_document(*document, "audit", path); !valid) {
      return tl::unexpected(valid.error());
    }
    for (Json& image : document->at("images")) {
      if (seen.insert(identity(image)).second) {
        out["images"].push_back(std::move(image));
      } else {
        ++copies;
      }
    }
    if (document->contains("tree")) add_counts(document->at("tree"), tree);
  }
  tree["copies"] = tree.value("copies", std::uint64_t{0}) + copies;
  out["tree"] = std::move(tree);
  return out;
}

}  // namespace metaldoctor
