#include <algorithm>
#include <memory>

#include "tools/metaldoctor/assumed_device.h"
#include "tools/metaldoctor/binary_input.h"
#include "tools/metaldoctor/context.h"
#include "tools/render/branches.h"
#include "tools/render/diagnosis.h"
#include "tools/render/findings.h"
#include "tools/render/program_diff.h"
#include "tools/render/sarif.h"

namespace metaldoctor {
namespace {

struct AuditInput {
  std::vector<std::string> files;
  std::string arch;
  BranchInput branches;
};

/// What the images of all files give in each format.
struct AuditOutput {
  std::string text;
  Json images = Json::array();
  std::vector<AuditedImage> audited;  ///< SARIF points into these
  std::vector<BranchComparison> comparisons;
  ExitStatus status = ExitStatus::done;
};

Result<void> add_image(Context& context, const Tables& tables, const AuditInput& input,
                       AuditedImage image, AuditOutput& out) {
  auto comparison = input.branches.compare(tables, paths_of(image.findings, image.programs));
  if (!comparison) return tl::unexpected(comparison.error());
  const std::string& format = context.options.format;
  if (format == "dump") {
    out.text += dump(image.findings);
  } else if (format == "text") {
    out.text += findings_text(tables, image.findings, image.programs, context.style());
    if (*comparison) out.text += branches_text(**comparison, context.style());
  } else if (format == "json") {
    Json json = findings_json(image.findings, image.programs);
    if (*comparison) json["branches"] = branches_json(**comparison);
    out.images.push_back(std::move(json));
  }
  if (!*comparison) return {};
  if ((*comparison)->has_findings()) out.status = worse(out.status, ExitStatus::findings);
  out.audited.push_back(std::move(image));
  out.comparisons.push_back(std::move(**comparison));
  return {};
}

Json sarif_of(const AuditOutput& out) {
  std::vector<SarifImage> images;
  for (std::size_t i = 0; i < out.audited.size(); ++i) {
    images.push_back({&out.audited[i].findings, &out.comparisons[i]});
  }
  return sarif_document(images, METALDOCTOR_VERSION);
}

/// `audit --diff OLD NEW`: two builds of a program. Slices are compared by architecture.
ExitStatus diff_programs(Context& context, const Tables& tables, const AuditInput& input) {
  std::vector<std::vector<AuditedImage>> builds;
  for (const std::string& path : input.branches.diff) {
    auto images = audit_file(tables, path, input.arch);
    if (!images) return context.report(images.error());
    builds.push_back(std::move(*images));
  }
  ProgramDiff diff;
  for (const AuditedImage& before : builds[0]) {
    for (const AuditedImage& after : builds[1]) {
      if (before.findings.image.arch != after.findings.image.arch) continue;
      if (before.findings.image.member != after.findings.image.member) continue;
      diff.push_back(
          {&before.findings, &after.findings, compare_findings(before.findings, after.findings)});
    }
  }
  if (diff.empty()) {
    return context.report({Fault::input,
                           "nothing-in-common",
                           input.branches.diff[1],
                           "has no architecture or member that " + input.branches.diff[0] + " has",
                           {}});
  }
  const bool changed =
      std::ranges::any_of(diff, [](const auto& row) { return !row.changes.empty(); });
  return context.write(context.options.format == "json" ? json_text(program_diff_json(diff))
                                                        : program_diff_text(diff, context.style()),
                       changed ? ExitStatus::findings : ExitStatus::done);
}

ExitStatus audit_command(Context& context, AuditInput input) {
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  if (input.files.empty() && input.branches.diff.empty()) {
    return context.report({Fault::usage, "no-file", "audit", "no file given",
                           "FILE..., or --diff OLD NEW for two builds of a program"});
  }
  if (input.files.empty()) return diff_programs(context, **tables, input);
  if (context.options.format == "sarif" && !input.branches.given()) {
    return context.report({Fault::usage, "nothing-compared", "--format sarif",
                           "results are branches, and no device was named to judge them",
                           "add --assume paravirtual"});
  }
  if (auto read = input.branches.read(**tables, context); !read) {
    return context.report(read.error());
  }
  AuditOutput out;
  for (const std::string& path : input.files) {
    auto images = audit_file(**tables, path, input.arch);
    if (!images) {
      out.status = worse(out.status, context.report(images.error()));
      continue;
    }
    for (AuditedImage& image : *images) {
      if (auto added = add_image(context, **tables, input, std::move(image), out); !added) {
        return context.report(added.error());
      }
    }
  }
  if (context.options.format == "json") {
    out.text = json_text({{"schema", "metaldoctor.audit/1"}, {"images", std::move(out.images)}});
  }
  if (context.options.format == "sarif") out.text = json_text(sarif_of(out));
  return context.write(out.text, out.status);
}

}  // namespace

Action define_audit(CLI::App& app) {
  auto input = std::make_shared<AuditInput>();
  app.add_option("files", input->files, "Mach-O files, fat files or static archives")
      ->type_name("FILE");
  app.add_option("--arch", input->arch, "only this slice: arm64, arm64e, x86_64");
  input->branches.add_options(app);
  app.get_option("--format")
      ->description("text, json, dump: one line a finding, or sarif: the branches");
  add_format_option(app, {"text", "json", "dump", "sarif"});
  return [input](Context& context) { return audit_command(context, *input); };
}

}  // namespace metaldoctor
