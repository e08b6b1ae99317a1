#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/metaldoctor/assumed_device.h"
#include "tools/metaldoctor/audit_merge.h"
#include "tools/metaldoctor/binary_tree.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/progress.h"
#include "tools/render/branches.h"
#include "tools/render/diagnosis.h"
#include "tools/render/findings.h"
#include "tools/render/preflight.h"
#include "tools/render/program_diff.h"
#include "tools/render/sarif.h"

namespace metaldoctor {
namespace {

struct AuditInput {
  std::vector<std::string> files;
  std::string arch;
  std::vector<std::string> merge;
  unsigned threads = 0;
  BranchInput branches;
};

/// What the images of all files give in each format.
struct AuditOutput {
  std::string text;
  Json images = Json::array();
  std::vector<AuditedImage> audited;  ///< SARIF points into these
  std::vector<BranchComparison> comparisons;
  bool has_directory = false;
  std::size_t files = 0, others = 0, copies = 0;  ///< of directories and bundles
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
    if (image.injection) out.text += injection_line(*image.injection, context.style());
    if (*comparison) out.text += branches_text(**comparison, context.style());
  } else if (format == "json") {
    Json json = findings_json(image.findings, image.programs);
    if (image.injection) json["injection"] = injection_json(*image.injection);
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

Json tree_json(const AuditOutput& out) {
  return {{"files", out.files}, {"others", out.others}, {"copies", out.copies}};
}

/// The Mach-O files of all inputs; what cannot be looked at is reported and left out.
std::vector<std::string> gather(Context& context, const AuditInput& input, AuditOutput& out) {
  std::vector<std::string> paths;
  for (const std::string& path : input.files) {
    auto tree = find_binaries(path);
    if (!tree) {
      out.status = worse(out.status, context.report(tree.error()));
      continue;
    }
    out.has_directory = out.has_directory || tree->is_directory;
    out.others += tree->others;
    for (const Diagnostic& each : tree->unreadable) {
      out.status = worse(out.status, context.report(each));
    }
    paths.insert(paths.end(), tree->files.begin(), tree->files.end());
  }
  return paths;
}

Result<void> audit_trees(Context& context, const Tables& tables, const AuditInput& input,
                         AuditOutput& out) {
  const std::vector<std::string> paths = gather(context, input, out);
  std::vector<AuditedFile> files;
  {
    ProgressLine line("audit", paths.size());
    files = audit_files(tables, paths, input.arch, input.threads,
                        [&](std::size_t done) { line.show(done); });
  }
  out.files = files.size();
  if (out.has_directory) out.copies = remove_copies(files);
  for (AuditedFile& file : files) {
    // Not every file of a tree has the slice that was asked for.
    const bool is_other =
        out.has_directory && !file.images && file.images.error().code == "no-slice";
    out.others += is_other;
    out.files -= is_other;
    if (is_other) continue;
    if (!file.images) out.status = worse(out.status, context.report(file.images.error()));
    for (const Diagnostic& each : file.unread) {
      out.status = worse(out.status, context.report(each));
    }
    if (!file.images) continue;
    for (AuditedImage& image : *file.images) {
      auto added = add_image(context, tables, input, std::move(image), out);
      if (!added) return added;
    }
  }
  if (out.has_directory && context.options.format == "text") {
    out.text += fmt::format(
        "\n{} Mach-O file(s), {} image(s) left out as copies, {} file(s) of other kinds\n",
        out.files, out.copies, out.others);
  }
  return {};
}

/// `audit --merge`: documents of several runs as one.
ExitStatus merge(Context& context, const AuditInput& input) {
  const auto merged = merge_audits(input.merge);
  if (!merged) return context.report(merged.error());
  return context.write(json_text(*merged), ExitStatus::done);
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
  if (!input.merge.empty()) return merge(context, input);
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
  if (auto done = audit_trees(context, **tables, input, out); !done) {
    return context.report(done.error());
  }
  if (context.options.format == "json") {
    Json document = {{"schema", "metaldoctor.audit/1"}, {"images", std::move(out.images)}};
    if (out.has_directory) document["tree"] = tree_json(out);
    out.text = json_text(document);
  }
  if (context.options.format == "sarif") out.text = json_text(sarif_of(out));
  return context.write(out.text, out.status);
}

}  // namespace

Action define_audit(CLI::App& app) {
  auto input = std::make_shared<AuditInput>();
  auto* files = app.add_option("files", input->files,
                               "Mach-O files, fat files, static archives, bundles and directories");
  files->type_name("FILE|DIR");
  app.add_option("--merge", input->merge, "JSON documents of earlier audits, as one document")
      ->type_name("JSON")
      ->excludes(files);
  app.add_option("--threads", input->threads, "files audited at once; 0 = as many as processors")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_option("--arch", input->arch, "only this slice")
      ->check(CLI::IsMember({"arm64", "arm64e", "x86_64"}));
  input->branches.add_options(app);
  app.get_option("--format")
      ->description("text, json, dump: one line a finding, or sarif: the branches");
  add_format_option(app, {"text", "json", "dump", "sarif"});
  return [input](Context& context) { return audit_command(context, *input); };
}

}  // namespace metaldoctor
