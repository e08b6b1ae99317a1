#include "tables/tables.h"

#include <fmt/core.h>

#include <memory>

#include "tools/metaldoctor/context.h"
#include "tools/render/diagnosis.h"
#include "tools/render/explain.h"

namespace metaldoctor {
namespace {

struct TablesInput {
  std::string name;
  bool validate = false;
};

/// One line a file; every problem on standard error.
ExitStatus validate(Context& context, const Tables& tables) {
  Json json = {{"schema", "metaldoctor.table-list/1"}, {"edition", tables.edition()}};
  json["table"] = "validation";
  json["rows"] = Json::array();
  ExitStatus status = ExitStatus::done;
  for (const Tables::FileReport& file : tables.validate()) {
    for (const Diagnostic& problem : file.problems) status = worse(status, context.report(problem));
    const std::string text = file.problems.empty()
                                 ? fmt::format("valid, {} rows, schema {}", file.rows, file.schema)
                                 : fmt::format("{} problem(s)", file.problems.size());
    json["rows"].push_back({{"id", file.name}, {"text", text}});
  }
  return context.write(
      context.options.format == "json" ? json_text(json) : table_list_text(json, context.style()),
      status);
}

ExitStatus tables_command(Context& context, const TablesInput& input) {
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  if (input.validate) return validate(context, **tables);
  auto list = list_tables(**tables, input.name);
  if (!list) return context.report(list.error());
  return context.write(
      context.options.format == "json" ? json_text(*list) : table_list_text(*list, context.style()),
      ExitStatus::done);
}

}  // namespace

Action define_tables(CLI::App& app) {
  auto input = std::make_shared<TablesInput>();
  app.add_option("name", input->name, "list the rows of this table");
  app.add_flag("--validate", input->validate, "check every file against its schema and the others");
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return tables_command(context, *input); };
}

}  // namespace metaldoctor
