#include <memory>

#include "scanners/device/capture.h"
#include "scanners/device/log_reader.h"
#include "scanners/diagnose/diagnose.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/device_input.h"
#include "tools/metaldoctor/live_probe.h"
#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

ExitStatus scan(Context& context, DeviceInput input) {
  if (!input.given()) input.probe = own_probe();
  if (!input.given()) {
    // Nothing on this machine to ask, and nothing to read.
    context.note(
        "metaldoctor scan: no Metal on this machine; give --capture FILE|NAME, --log FILE|-, or "
        "--probe PROGRAM");
    return ExitStatus::usage;
  }
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  auto options = input.diagnose_options(**tables);
  if (!options) return context.report(options.error());
  auto capture = input.read(**tables, context);
  if (!capture) return context.report(capture.error());

  const Diagnosis diagnosis = diagnose(**tables, *capture, *options);
  const ExitStatus status = diagnosis.has_findings() ? ExitStatus::findings : ExitStatus::done;
  return context.write(context.options.format == "json"
                           ? json_text(diagnosis_json(*capture, diagnosis))
                           : diagnosis_text(**tables, *capture, diagnosis, context.style()),
                       status);
}

}  // namespace

Action define_scan(CLI::App& app) {
  auto input = std::make_shared<DeviceInput>();
  input->add_options(app);
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return scan(context, *input); };
}

}  // namespace metaldoctor
