// Writes the rows of tables/data/queries.json as initialisers, for code that has no JSON reader:
//   generate_queries shim QUERIES.json             the overridable queries, for shim/dylib/query.h
//   generate_queries probe QUERIES.json FAMILIES.json   every query that is safe to ask
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

namespace {

using Json = nlohmann::ordered_json;

Json rows(const char* path) {
  std::ifstream in(path);
  return Json::parse(in).at("rows");
}

void print_shim(const Json& queries) {
  std::map<int, const Json*> ordered;
  for (const Json& row : queries) {
    if (row.contains("wire")) ordered[row.at("wire")] = &row;
  }
  for (const auto& [wire, row] : ordered) {
    fmt::print("{{{}, {}, {}, \"{}\"}},\n", wire, row->at("type") == "boolean",
               row->contains("argument"), std::string(row->at("selector")));
  }
}

/// Programs look for the highest family of a line in a loop that starts above the last one that
/// exists: ggml's ggml_metal_device_init asks 1021 to 1001, 3006 to 3001 and 5006 to 5001.
std::set<std::int64_t> family_arguments(const Json& families) {
  std::set<std::int64_t> values;
  for (const Json& row : families) values.insert(row.at("value").get<std::int64_t>());
  for (const auto [first, last] : {std::pair{1001, 1021}, {3001, 3006}, {5001, 5006}}) {
    for (int value = first; value <= last; ++value) values.insert(value);
  }
  return values;
}

void print_probe(const Json& queries, const Json& families) {
  for (const Json& row : queries) {
    if (!row.at("safe_to_ask").get<bool>()) continue;
    const std::string selector = row.at("selector");
    std::set<std::int64_t> arguments;
    if (row.contains("known_arguments")) row.at("known_arguments").get_to(arguments);
    if (selector == "supportsFamily:") arguments.merge(family_arguments(families));
    fmt::print("{{\"{}\", Type::{}, \"{}\", {}, {{{}}}}},\n", selector, std::string(row.at("type")),
               std::string(row.at("encoding_arm64")), arguments.size(), fmt::join(arguments, ", "));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  if (what == "shim") {
    print_shim(rows(argv[2]));
    return 0;
  }
  if (what == "probe" && argc > 3) {
    print_probe(rows(argv[2]), rows(argv[3]));
    return 0;
  }
  fmt::print(stderr,
             "usage: generate_queries shim QUERIES.json | probe QUERIES.json FAMILIES.json\n");
  return 2;
}
