#include "scanners/device/wire_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>

namespace metaldoctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using wire::Line;

const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

std::string text_of(Line& line) {
  const std::size_t size = line.finish();
  return {line.data(), size};
}

/// Lines as metal-probe writes them.
class Probe {
 public:
  Probe& add(Line& line) {
    text_ += text_of(line);
    ++lines_;
    return *this;
  }
  Probe& header(const char* producer = "probe") {
    return add(Line(wire::kHeader).text(producer).text("0.1.0"));
  }
  Probe& system(const char* key, const char* value) {
    return add(Line("system").text(key).quoted(value));
  }
  Probe& device(std::uint64_t index, const char* cls, bool is_default = true) {
    return add(Line("device").number(index).text(cls).truth(is_default));
  }
  Probe& family(std::int64_t family, bool answer, std::uint64_t device = 0) {
    return add(Line("answer").number(device).text("supportsFamily:").integer(family).truth(answer));
  }
  std::string end() {
    add(Line("end").number(lines_));
    return text_;
  }

 private:
  std::string text_;
  std::uint64_t lines_ = 0;
};

std::string sample() {
  Probe probe;
  probe.header().system("os", "26.5.2").system("cpu_brand", "Apple M1 Ultra (Virtual)");
  probe.add(Line("system").text("is_virtual").truth(true));
  probe.add(Line("devices").number(1).truth(true)).device(0, "AppleParavirtDevice");
  probe.family(1005, true).family(1006, false).family(1012, false);
  probe.add(
      Line("answer").number(0).text("maxThreadgroupMemoryLength").no_argument().number(32768));
  probe.add(Line("answer").number(0).text("name").no_argument().quoted("Apple Paravirtual device"));
  probe.add(
      Line("answer").number(0).text("registryID").no_argument().number(18446744073709551615u));
  probe.add(Line("answer")
                .number(0)
                .text("maxThreadsPerThreadgroup")
                .no_argument()
                .quoted("1024x1024x1024"));
  probe.add(Line("unanswered")
                .number(0)
                .text("supportsPlacementSparse")
                .no_argument()
                .text("the device has no such method"));
  probe.add(Line("fact").number(0).text("rset_ok").truth(false));
  return probe.end();
}

Value answer(const Capture& capture, const char* query, std::vector<std::int64_t> arguments = {}) {
  return capture.answer({query, std::move(arguments)});
}

std::string reason(const Capture& capture, const QueryKey& key) {
  for (const UnknownAnswer& row : capture.unknown) {
    if (row.key == key) return row.reason;
  }
  return {};
}

TEST(ReadProbe, MakesACapture) {
  const auto output = read_probe(tables(), sample(), "guest.wire");
  ASSERT_TRUE(output) << output.error().what;
  EXPECT_TRUE(output->complete);
  EXPECT_EQ(output->damaged_count, 0u);
  ASSERT_EQ(output->devices.size(), 1u);
  const Capture& capture = output->devices[0];
  EXPECT_EQ(capture.name, "Apple Paravirtual device");
  EXPECT_EQ(capture.registry_id, "18446744073709551615");
  EXPECT_EQ(capture.system.os, "26.5.2");
  EXPECT_EQ(capture.system.cpu_brand, "Apple M1 Ultra (Virtual)");
  EXPECT_EQ(capture.system.is_virtual, true);
  EXPECT_EQ(answer(capture, "supportsFamily:", {1005}), Value{true});
  EXPECT_EQ(answer(capture, "supportsFamily:", {1006}), Value{false});
  EXPECT_EQ(answer(capture, "maxThreadgroupMemoryLength"), Value{std::int64_t{32768}});
  EXPECT_EQ(capture.fact("rset_ok")->value, Value{false});
  EXPECT_EQ(capture.fact("device.class")->value, Value{"AppleParavirtDevice"});
  const CapturedAnswer* row = capture.find({"supportsFamily:", {1006}});
  EXPECT_EQ(row->evidence, Evidence::measured);
  EXPECT_EQ(row->source.line, 8u);
  EXPECT_EQ(reason(capture, {"supportsPlacementSparse", {}}), "the device has no such method");
}

// The document of a capture must be one that the reader of captures takes.
TEST(ReadProbe, TheCaptureIsAValidDocument) {
  const auto output = read_probe(tables(), sample(), "guest.wire");
  const auto again = read_capture(tables(), to_json(output->devices[0]).dump(), "capture.json");
  EXPECT_TRUE(again) << again.error().where << ": " << again.error().what;
}

TEST(ReadProbe, WhatIsNotToldIsUnknown) {
  const auto output = read_probe(tables(), sample(), "guest.wire");
  EXPECT_EQ(reason(output->devices[0], {"supportsFamily:", {1007}}),
            "its line is missing or damaged");
  EXPECT_FALSE(is_known(answer(output->devices[0], "supportsFamily:", {1007})));
}

TEST(ReadProbe, NoDevice) {
  Probe probe;
  probe.header().add(Line("devices").number(0).truth(false));
  const auto output = read_probe(tables(), probe.end(), "guest.wire");
  ASSERT_TRUE(output);
  EXPECT_TRUE(output->complete);
  ASSERT_EQ(output->devices.size(), 1u);
  EXPECT_TRUE(output->devices[0].answers.empty());
  EXPECT_EQ(output->devices[0].fact("devices.count")->value, Value{std::int64_t{0}});
  EXPECT_EQ(output->devices[0].fact("devices.default")->value, Value{false});
}

// Nothing is concluded from a line that is not there.
TEST(ReadProbe, WithoutTheLineOfDevicesNothingIsKnownOfThem) {
  Probe probe;
  probe.header().system("os", "26.5");
  const auto output = read_probe(tables(), probe.end(), "guest.wire");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->devices.at(0).fact("devices.count"), nullptr);
}

TEST(ReadProbe, DamageIsAFactOfTheCapture) {
  std::string text = sample();
  text[text.find("supportsFamily:") + 1] = 'X';
  text.resize(text.rfind("end"));
  const auto output = read_probe(tables(), text, "guest.wire");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->devices.at(0).fact("log.damaged_line")->value, Value{std::int64_t{7}});
  EXPECT_EQ(output->devices.at(0).fact("log.cut_short")->value, Value{true});
}

TEST(ReadProbe, TwoDevicesStayApart) {
  Probe probe;
  probe.header().device(0, "AppleParavirtDevice").family(1007, false, 0);
  probe.device(1, "AGXG13XDevice", false).family(1007, true, 1);
  const auto output = read_probe(tables(), probe.end(), "guest.wire");
  ASSERT_EQ(output->devices.size(), 2u);
  EXPECT_EQ(answer(output->devices[0], "supportsFamily:", {1007}), Value{false});
  EXPECT_EQ(answer(output->devices[1], "supportsFamily:", {1007}), Value{true});
}

// Wherever a text is cut, every answer that is still told is a true one.
TEST(ReadProbe, ACutTextTellsNothingWrong) {
  const std::string whole = sample();
  const auto full = read_probe(tables(), whole, "guest.wire");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = read_probe(tables(), std::string_view(whole).substr(0, size), "guest.wire");
    if (!cut) continue;
    EXPECT_FALSE(cut->complete && size + 1 < whole.size());
    for (const Capture& capture : cut->devices) {
      for (const CapturedAnswer& row : capture.answers) {
        EXPECT_EQ(row.answer.value, full->devices[0].answer(row.answer.key));
      }
    }
  }
}

TEST(ReadProbe, GluedLinesAreNotUsed) {
  std::string text = sample();
  const std::string whole_line = "answer\t0\tsupportsFamily:\t1006";
  const std::size_t at = text.find(whole_line);
  ASSERT_NE(at, text.npos);
  text.erase(at + whole_line.size(), text.find('\n', at) - at - whole_line.size() + 1);
  const auto output = read_probe(tables(), text, "guest.wire");
  EXPECT_EQ(output->damaged_count, 1u);
  EXPECT_FALSE(output->complete);
  EXPECT_FALSE(is_known(answer(output->devices[0], "supportsFamily:", {1006})));
  EXPECT_FALSE(is_known(answer(output->devices[0], "supportsFamily:", {1012})));
}

struct Garbage {
  const char* code;
  std::function<std::string()> text;
};
TEST(ReadProbe, GarbageIsRefused) {
  const Garbage cases[] = {
      {"wire-header", [] { return std::string(); }},
      {"wire-header", [] { return std::string("{\"schema\": 1}"); }},
      {"wire-two-outputs", [] { return sample() + sample(); }},
      {"wire-header", [] { return std::string(70'000, '\n') + sample(); }},
      {"wire-version", [] { return "metaldoctor-wire 2\tprobe\t9.0\t00000000\n"; }},
      {"wire-producer",
       [] {
         Probe p;
         p.header("shim");
         return p.end();
       }},
      {"wire-damaged",
       [] {  // tabs lost, as when copied from a terminal
         std::string text = sample();
         std::replace(text.begin() + text.find('\n'), text.end(), '\t', ' ');
         text.replace(text.find("0.1.0"), 5, "0.1.1");
         return text;
       }},
      {"wire-size", [] { return std::string((16u << 20) + 1, 'x'); }},
  };
  for (const Garbage& garbage : cases) {
    const auto output = read_probe(tables(), garbage.text(), "guest.wire");
    ASSERT_FALSE(output) << garbage.code;
    EXPECT_EQ(output.error().code, garbage.code);
    EXPECT_EQ(output.error().fault, Fault::input);
  }
}

// What a login shell or an editor puts before the header.
TEST(ReadProbe, TextBeforeTheHeaderIsDamageAndNoMore) {
  for (const std::string before : {"motd: welcome\n", "\xef\xbb\xbf", "\n", "a\r\nb\r\n"}) {
    ASSERT_TRUE(is_wire(before + sample()));
    const auto output = read_probe(tables(), before + sample(), "guest.wire");
    ASSERT_TRUE(output) << before;
    EXPECT_TRUE(output->complete);
    EXPECT_EQ(answer(output->devices.at(0), "supportsFamily:", {1005}), Value{true});
    EXPECT_EQ(output->damaged_count, static_cast<std::size_t>(std::ranges::count(before, '\n')) -
                                         (before == "\n" ? 1 : 0));
  }
}

TEST(ReadProbe, WhatTheSystemIsIsToldOnce) {
  Probe probe;
  probe.header().system("cpu_brand", "Apple M1 (Virtual)").system("cpu_brand", "Apple M3 Max");
  const auto output = read_probe(tables(), probe.end(), "guest.wire");
  EXPECT_EQ(output->system.cpu_brand, "Apple M1 (Virtual)");
  EXPECT_EQ(output->damaged_count, 1u);
}

TEST(ReadProbe, AHostileNumberOfFactsOrDamageIsCut) {
  Probe probe;
  probe.header().device(0, "A");
  for (int i = 0; i < 3000; ++i) {
    probe.add(Line("fact").number(0).text(fmt::format("f{}", i).c_str()).truth(true));
  }
  const auto output = read_probe(tables(), probe.end(), "guest.wire");
  ASSERT_TRUE(output);
  EXPECT_LT(output->devices.at(0).facts.size(), 300u);
  EXPECT_LE(output->damaged.size(), 100u);
  EXPECT_GT(output->damaged_count, 2000u);
}

TEST(ReadProbe, AValueOutOfRangeIsRefusedByItsLine) {
  Probe probe;
  probe.header().device(0, "A");
  probe.add(Line("answer").number(0).text("maxThreadgroupMemoryLength").no_argument().integer(-5));
  const auto output = read_probe(tables(), probe.end(), "guest.wire");
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().where, "guest.wire:3");
}

TEST(ReadProbe, StrangeLinesAreDamage) {
  Probe probe;
  probe.header().family(1001, true, 0);          // before its device
  probe.device(0, "A").device(0, "B");           // twice
  probe.family(1001, true).family(1001, false);  // twice
  probe.add(Line("answer").number(0).text("nonsense").no_argument().truth(true));
  probe.add(Line("answer").number(0).text("supportsFamily:").no_argument().truth(true));
  probe.add(Line("asked").number(0));              // too few fields
  probe.add(Line("process").number(1).text("x"));  // of a journal
  probe.add(Line("later").number(1));              // of another version
  probe.add(Line("answer").number(0).text("hasUnifiedMemory").no_argument().number(1));
  const auto output = read_probe(tables(), probe.end(), "guest.wire");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->damaged_count, 8u);
  EXPECT_EQ(answer(output->devices[0], "supportsFamily:", {1001}), Value{true});
  EXPECT_THAT(reason(output->devices[0], {"hasUnifiedMemory", {}}), HasSubstr("kind"));
}

TEST(WireText, EscapesComeBack) {
  const std::string path = "/tmp/a b%c\td\xc3\xa9";
  Line line("process");
  line.number(1).text(path.c_str());
  Probe probe;
  const auto journal = read_journal(tables(), probe.header("shim").add(line).end(), "journal");
  ASSERT_TRUE(journal);
  // A tab cannot be printed: the whole text stays as it was written.
  EXPECT_EQ(journal->processes.at(0).executable, "/tmp/a b%25c%09d%C3%A9");
  Line plain("process");
  plain.number(1).text("/tmp/a b%c\xc3\xa9");
  const auto readable = read_journal(tables(), Probe().header("shim").add(plain).end(), "journal");
  EXPECT_EQ(readable->processes.at(0).executable, "/tmp/a b%c\xc3\xa9");
}

// Found by the fuzz target: such bytes would reach JSON and terminals.
TEST(WireText, BytesThatShouldBeEscapedAreDamage) {
  std::string body = "process\t7\t/bin/\xff\xfe";
  body += fmt::format("\t{:08x}\n", wire::check(body.data(), body.size()));
  const auto journal = read_journal(tables(), Probe().header("shim").end() + body, "journal");
  EXPECT_TRUE(journal->processes.empty());
  EXPECT_EQ(journal->damaged_count, 2u) << "that line, and the end line of the sample";
}

TEST(WireText, LongTextIsMarked) {
  Line line("process");
  line.number(1).text(std::string(5000, '\x01').c_str());
  const std::string text = text_of(line);
  EXPECT_LE(text.size(), wire::kMaxLine);
  EXPECT_THAT(text, HasSubstr("%01%+\t"));
}

TEST(ReadJournal, ProcessesOfOneFileStayApart) {
  Probe probe;
  probe.header("shim").add(Line("process").number(7).text("/bin/server"));
  probe.add(Line("profile")
                .number(7)
                .text("section")
                .text("active")
                .number(2)
                .text("host")
                .text("all")
                .text("tree"));
  probe.add(Line("install")
                .number(7)
                .text("_MTLDevice")
                .text("waiting")
                .number(0)
                .text("for a device")
                .text("initGPUFamilySupport"));
  probe.header("shim").add(Line("process").number(8).text("/bin/worker"));
  probe.add(Line("install")
                .number(7)
                .text("AppleParavirtDevice")
                .text("installed")
                .number(1)
                .text("")
                .text(""));
  probe.add(Line("asked")
                .number(7)
                .text("AppleParavirtDevice")
                .text("supportsFamily:")
                .integer(1007)
                .truth(false)
                .truth(true)
                .text("/bin/server")
                .number(4096));
  probe.add(Line("install")
                .number(8)
                .text("AGXG13XDevice")
                .text("refused")
                .number(0)
                .text("the method is encoded otherwise")
                .text("supportsFamily:"));
  probe.add(Line("process").number(7).text("/bin/other"));  // the number was used again
  const auto journal = read_journal(tables(), probe.end(), "journal");
  ASSERT_TRUE(journal);
  ASSERT_EQ(journal->processes.size(), 3u);
  const JournalProcess& server = journal->processes[0];
  EXPECT_EQ(server.executable, "/bin/server");
  EXPECT_EQ(server.state, "active");
  EXPECT_EQ(server.changes, 2u);
  EXPECT_TRUE(server.took_hold());
  ASSERT_EQ(server.asked.size(), 1u);
  EXPECT_EQ(to_string(server.asked[0].key), "supportsFamily:1007");
  EXPECT_EQ(server.asked[0].stock, Value{false});
  EXPECT_EQ(server.asked[0].given, Value{true});
  EXPECT_EQ(server.asked[0].offset, 4096u);
  EXPECT_FALSE(server.full);
  EXPECT_FALSE(journal->processes[1].took_hold());
  EXPECT_EQ(journal->processes[1].installs[0].selector, "supportsFamily:");
  EXPECT_EQ(journal->processes[2].executable, "/bin/other");
  EXPECT_EQ(journal->damaged_count, 1u) << "a journal has no end line";
}

}  // namespace
}  // namespace metaldoctor
