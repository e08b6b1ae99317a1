#include "scanners/simulator/runtime_tables.h"

#include <array>

#include "tables/document.h"
#include "tables/embedded_file.h"

namespace metaldoctor {
namespace {

template <typename T>
using Words = std::pair<std::string_view, T>;

constexpr std::array<Words<SelectorRow::Returns>, 9> returns_words = {{
    {"void", SelectorRow::Returns::nothing},
    {"object", SelectorRow::Returns::object},
    {"array", SelectorRow::Returns::array},
    {"bool", SelectorRow::Returns::boolean},
    {"integer", SelectorRow::Returns::integer},
    {"unsigned", SelectorRow::Returns::integer},
    {"double", SelectorRow::Returns::floating},
    {"pointer", SelectorRow::Returns::pointer},
    {"struct", SelectorRow::Returns::structure},
}};
constexpr std::array<Words<SelectorRow::Role>, 4> role_words = {{
    {"creates", SelectorRow::Role::creates},
    {"getter", SelectorRow::Role::getter},
    {"acts", SelectorRow::Role::acts},
    {"absent", SelectorRow::Role::absent},
}};

template <typename T, std::size_t N>
T word(const std::array<Words<T>, N>& words, const Json& json, T otherwise) {
  for (const auto& [text, value] : words)
    if (json == text) return value;
  return otherwise;
}

Result<Json> table(std::string_view name) {
  for (const EmbeddedFile& file : embedded_tables())
    if (file.name == name) return parse_json(file.bytes, name);
  return fail(Fault::bug, "table-missing", std::string(name), "the table was not embedded");
}

RuntimeClass read_class(const Json& row) {
  RuntimeClass read;
  read.name = row.at("name");
  read.superclass = row.at("superclass");
  read.superclass_x86_64 = row.value("superclass_x86_64", read.superclass);
  read.image = row.at("image");
  read.protocols = row.at("protocols").get<std::vector<std::string>>();
  for (const Json& method : row.at("methods")) {
    const std::string types = method.at("types");
    read.methods.push_back({method.at("selector"), types, method.value("types_x86_64", types),
                            method.at("does"),
                            method.value("families", std::vector<std::int64_t>{})});
  }
  return read;
}

SelectorRow read_selector(const Json& row) {
  SelectorRow read;
  read.returns = word(returns_words, row.at("returns"), SelectorRow::Returns::object);
  read.role = word(role_words, row.at("role"), SelectorRow::Role::getter);
  if (row.contains("value")) read.value = row.at("value").get<std::int64_t>();
  read.size = row.value("size", std::uint64_t{0});
  read.on = row.value("on", std::string{});
  return read;
}

}  // namespace

Result<RuntimeTables> RuntimeTables::embedded() {
  RuntimeTables tables;
  auto runtime = table("data/metal-runtime.json");
  auto selectors = table("data/objc-selectors.json");
  if (!runtime) return tl::unexpected(runtime.error());
  if (!selectors) return tl::unexpected(selectors.error());
  try {
    for (const Json& row : runtime->at("rows")) tables.classes.push_back(read_class(row));
    tables.feature_families =
        runtime->at("feature_queries").at("families").get<std::map<std::string, std::int64_t>>();
    for (const Json& row : selectors->at("rows"))
      tables.selectors.emplace(row.at("selector"), read_selector(row));
  } catch (const nlohmann::json::exception& e) {
    return fail(Fault::bug, "table-malformed", "tables of the simulator", e.what());
  }
  return tables;
}

}  // namespace metaldoctor
