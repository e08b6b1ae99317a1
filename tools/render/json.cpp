#include <fmt/core.h>

#include "tools/render/diagnosis.h"

namespace metaldoctor {

std::string json_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json to_json(const Value& value) {
  // Integers that a JSON reader could round are decimal strings in every document of ours.
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool b) const { return b; }
    Json operator()(std::int64_t n) const {
      return n > exact || n < -exact ? Json(std::to_string(n)) : Json(n);
    }
    Json operator()(const std::string& s) const { return s; }
  };
  return std::visit(Visitor{}, value);
}

Json to_json(const QueryKey& key) {
  return {{"query", key.query}, {"arguments", key.arguments}};
}

std::string query_text(const Tables& tables, const QueryKey& key) {
  if (key.query == "supportsFamily:" && key.arguments.size() == 1) {
    const Family* family = tables.family(key.arguments.front());
    return fmt::format("{} ({})", to_string(key),
                       family != nullptr ? family->short_name : "not a family");
  }
  return to_string(key);
}

}  // namespace metaldoctor
