#include <fmt/format.h>

#include <memory>

#include "tools/metaldoctor/binary_input.h"
#include "tools/metaldoctor/context.h"
#include "tools/render/diagnosis.h"
#include "tools/render/findings.h"

namespace metaldoctor {
namespace {

struct AuditInput {
  std::vector<std::string> files;
  std::string arch;
};

ExitStatus audit_command(Context& context, const AuditInput& input) {
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  ExitStatus status = ExitStatus::done;
  std::string text;
  Json document = {{"schema", "metaldoctor.audit/1"}, {"images", Json::array()}};
  for (const std::string& path : input.files) {
    auto images = audit_file(**tables, path, input.arch);
    if (!images) {
      status = worse(status, context.report(images.error()));
      continue;
    }
    for (const AuditedImage& image : *images) {
      if (context.options.format == "json") {
        document["images"].push_back(findings_json(image.findings, image.programs));
      } else if (context.options.format == "dump") {
        text += dump(image.findings);
      } else {
        text += findings_text(**tables, image.findings, image.programs, context.style());
      }
    }
  }
  return context.write(context.options.format == "json" ? json_text(document) : text, status);
}

}  // namespace

Action define_audit(CLI::App& app) {
  auto input = std::make_shared<AuditInput>();
  app.add_option("files", input->files, "Mach-O files, fat files or static archives")
      ->type_name("FILE")
      ->required();
  app.add_option("--arch", input->arch, "only this slice: arm64, arm64e, x86_64");
  app.get_option("--format")->description("text, json, or dump: one line a finding");
  add_format_option(app, {"text", "json", "dump"});
  return [input](Context& context) { return audit_command(context, *input); };
}

}  // namespace metaldoctor
