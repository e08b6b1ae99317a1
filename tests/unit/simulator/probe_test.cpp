// metal-probe in a simulated guest: what `scan` makes of its output is what it makes of the capture
// that the guest answered from.
#include <gmock/gmock.h>

#include <algorithm>

#include "harness.h"
#include "scanners/device/wire_reader.h"
#include "scanners/diagnose/diagnose.h"

namespace metaldoctor::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SimRequest probing(const std::string& arch, std::vector<SimDevice> devices) {
  SimRequest asked;
  asked.arch = arch;
  asked.images = {{METALDOCTOR_PROBE, file_bytes(METALDOCTOR_PROBE)}};
  asked.devices = std::move(devices);
  SimStep start, main;
  start.kind = SimStep::Kind::initializers;
  main.kind = SimStep::Kind::main;
  main.argv = {"metal-probe"};
  asked.steps = {start, main};
  asked.runs = {{"probe", {}, {}}};
  return asked;
}

SimDevice built_in(const std::string& name) {
  return {*read_capture(tables(), *tables().capture_text(name), name), "", {}};
}

struct Probed {
  ProbeOutput output;
  Trace trace;
};

Probed probe(const SimRequest& asked) {
  Probed probed;
  probed.trace = simulated(asked).runs[0];
  EXPECT_EQ(probed.trace.exit_status, 0) << outcome(probed.trace);
  std::string text;
  for (const SimLogLine& line : probed.trace.log) {
    if (line.stream == "stdout") text += line.text + "\n";
  }
  auto output = read_probe(tables(), text, "guest.wire");
  EXPECT_TRUE(output) << (output ? "" : output.error().what);
  if (output) probed.output = *std::move(output);
  EXPECT_TRUE(probed.output.complete);
  EXPECT_EQ(probed.output.damaged_count, 0u);
  return probed;
}

/// A diagnosis without what names the kind of input: evidence, sources and wording of reasons.
std::vector<std::string> gist(const Capture& capture) {
  const Diagnosis diagnosis = diagnose(tables(), capture, {tables().chip("M1 Ultra"), {}});
  std::vector<std::string> lines{"verdict " + diagnosis.verdict};
  for (const DiagnosisCode& row : diagnosis.codes) lines.push_back(row.code + " " + row.detail);
  for (const Comparison& row : diagnosis.comparisons) {
    std::string line = to_string(row.key) + " " + to_string(row.guest) + " instead of " +
                       to_string(row.expected) + " kind " +
                       std::to_string(static_cast<int>(row.kind));
    for (const std::string& feature : row.locks) line += " locks " + feature;
    for (const ComparisonHazard& hazard : row.hazards) line += " hazard " + hazard.id;
    lines.push_back(line);
  }
  // What the tables do not list follows the order of the input.
  std::ranges::sort(lines);
  return lines;
}

/// The capture with what the simulated device answered where it is silent, and without the facts of
/// programs: a probe sees devices.
Capture as_seen(Capture capture, const Probed& probed) {
  for (const SimQuery& row : probed.trace.queries) {
    const Query* query = tables().query(row.key.query);
    if (is_known(capture.answer(row.key)) || query == nullptr) continue;
    Value value = row.answer;
    if (query->type == AnswerType::boolean) value = row.answer != 0;
    if (query->type == AnswerType::text) value = row.text;
    if (query->type == AnswerType::object) continue;
    // The trace has no structures.
    if (query->type == AnswerType::structure) value = probed.output.devices[0].answer(row.key);
    capture.answers.push_back({{row.key, value}, Evidence::measured, {}});
  }
  std::erase_if(capture.facts, [](const CapturedFact& row) { return row.fact != "rset_ok"; });
  return capture;
}

class Probe : public EachArchitecture {};
INSTANTIATE_TEST_SUITE_P(, Probe, ::testing::Values("arm64", "x86_64"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Probe, SaysOfABuiltInCaptureWhatItHolds) {
  for (const std::string_view view : tables().capture_names()) {
    const std::string name(view);
    SCOPED_TRACE(name);
    const SimDevice device = built_in(name);
    const Probed probed = probe(probing(GetParam(), {device}));
    ASSERT_THAT(probed.output.devices, SizeIs(1));
    // Every answer of the capture came through.
    for (const CapturedAnswer& row : device.capture.answers) {
      const Query* query = tables().query(row.answer.key.query);
      if (query == nullptr || !query->safe_to_ask) continue;
      EXPECT_EQ(probed.output.devices[0].answer(row.answer.key), row.answer.value)
          << to_string(row.answer.key);
    }
    const auto seen = gist(probed.output.devices[0]);
    const auto expected = gist(as_seen(device.capture, probed));
    for (const std::string& line : seen) EXPECT_THAT(expected, Contains(line));
    EXPECT_EQ(seen, expected);
  }
}

TEST_P(Probe, SeesThroughWrappers) {
  const SimDevice plain = built_in("paravirtual");
  auto expected = gist(probe(probing(GetParam(), {plain})).output.devices.at(0));
  // A wrapper may end a process that asks for what it thinks unable, so it is not asked.
  std::erase_if(expected, [](const std::string& line) { return line.starts_with("RESIDENCY"); });
  for (const auto wrapper : {SimDevice::Wrapper::debug, SimDevice::Wrapper::capture}) {
    SimDevice wrapped = plain;
    wrapped.wrapper = wrapper;
    const Probed probed = probe(probing(GetParam(), {wrapped}));
    ASSERT_THAT(probed.output.devices, SizeIs(1));
    EXPECT_EQ(gist(probed.output.devices[0]), expected);
  }
}

TEST_P(Probe, TellsTwoDevicesApart) {
  SimDevice second = built_in("paravirtual");
  second.driver = "BronzeMtlDevice";
  second.capture.name = "AMD Radeon Pro 5500M";
  const Probed probed = probe(probing(GetParam(), {built_in("cua-2026-08-stock"), second}));
  ASSERT_THAT(probed.output.devices, SizeIs(2));
  EXPECT_EQ(probed.output.devices[0].name, "Apple Paravirtual device");
  EXPECT_EQ(probed.output.devices[1].name, "AMD Radeon Pro 5500M");
  EXPECT_EQ(probed.output.devices[0].fact("devices.count")->value, Value{std::int64_t{2}});
  EXPECT_EQ(probed.output.devices[1].fact("device.class")->value, Value{"BronzeMtlDevice"});
  EXPECT_EQ(probed.output.devices[1].fact("device.default")->value, Value{false});
}

TEST_P(Probe, OfNoDeviceIsAFinding) {
  const Probed probed = probe(probing(GetParam(), {}));
  ASSERT_THAT(probed.output.devices, SizeIs(1));
  const Diagnosis diagnosis = diagnose(tables(), probed.output.devices[0], {});
  EXPECT_EQ(diagnosis.verdict, "no-device-visible");
  EXPECT_TRUE(diagnosis.has_findings());
  EXPECT_THAT(probed.output.devices[0].answers, IsEmpty());
}

}  // namespace
}  // namespace metaldoctor::testing
