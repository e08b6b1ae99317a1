#include <memory>

#include "tools/metaldoctor/injected_run.h"

namespace metaldoctor {
namespace {

struct TraceInput {
  InjectedRun run;
  bool tree = false;
};

ExitStatus trace_command(Context& context, const TraceInput& input) {
  if (auto given = check_command(context, "trace"); !given) return context.report(given.error());
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  EmitOptions options;
  options.observe = true;
  options.scope = input.tree ? Profile::Scope::tree : Profile::Scope::process;
  const auto library = emit(**tables, {}, options);
  if (!library) return context.report(library.error());
  return input.run.run(context, **tables, *library);
}

}  // namespace

Action define_trace(CLI::App& app) {
  auto input = std::make_shared<TraceInput>();
  input->run.observing = true;
  input->run.add_options(app);
  app.add_flag("--tree", input->tree, "its children too: servers that start a worker");
  return [input](Context& context) { return trace_command(context, *input); };
}

}  // namespace metaldoctor
