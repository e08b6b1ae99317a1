#include "tools/render/explain.h"

#include <memory>

#include "tools/metaldoctor/context.h"
#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

ExitStatus explain_command(Context& context, const std::string& name) {
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  auto explanation = explain(**tables, name);
  if (!explanation) return context.report(explanation.error());
  return context.write(context.options.format == "json"
                           ? json_text(*explanation)
                           : explanation_text(**tables, *explanation, context.style()),
                       ExitStatus::done);
}

}  // namespace

Action define_explain(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("name", *name,
                 "a query, family, feature, limit, hazard, code, chip, program or observation")
      ->required();
  add_format_option(app, {"text", "json"});
  return [name](Context& context) { return explain_command(context, *name); };
}

}  // namespace metaldoctor
