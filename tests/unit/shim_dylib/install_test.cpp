// The installation against a small runtime with the class tree of Metal.
#include "shim/dylib/install.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/shim_dylib/simulated_objc.h"

namespace metaldoctor::shim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kFamilyTypes[] = "B24@0:8q16";

/// Apple1 to Apple5 with garbage above the BOOL, as a compiled method may leave it.
std::uint64_t families_to_5(Id, Sel, std::int64_t family) {
  return family >= 1001 && family <= 1005 ? 0xabcd0001 : 0xabcd0000;
}
std::uint64_t memory_32k(Id, Sel, std::int64_t) {
  return 32768;
}
std::uint64_t yes(Id, Sel, std::int64_t) {
  return 1;
}
std::uint64_t nothing(Id, Sel, std::int64_t) {
  return 0;
}

/// NSObject <- _MTLDevice <- accelerator <- driver, with the queries where Metal has them.
class Install : public testing::Test {
 protected:
  void SetUp() override {
    reset_runtime();
    base_ = add_class("_MTLDevice", add_class("NSObject", nullptr));
    add_method(base_, "initGPUFamilySupport", nothing, "v16@0:8");
    add_method(base_, "supportsFamily:", families_to_5, kFamilyTypes);
    accelerator_ = add_class("IOGPUMetalDevice", base_);
    add_method(accelerator_, "hasUnifiedMemory", yes, "B16@0:8");
    driver_ = add_class("AppleParavirtDevice", accelerator_);
    add_method(driver_, "maxThreadgroupMemoryLength", memory_32k, "Q16@0:8");
    other_ = add_class("AGXG13XDevice", accelerator_);
  }
  void use(const std::string& text) {
    ASSERT_TRUE(parse_overrides(text.data(), text.size(), state.configuration.overrides)) << text;
  }
  void start_device(objc_class* cls) {
    objc_object device{cls};
    send(device, "initGPUFamilySupport");
  }
  objc_class *base_, *accelerator_, *driver_, *other_;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_F(Install, ChangesTheAnswersOfTheProfileAndNoOther) {
  use("mdp1;all;process;host;1:1006=1;1:1007=1;.");
  ASSERT_TRUE(install_moment());
  start_device(driver_);
  objc_object device{driver_};
  for (std::int64_t family = 1000; family <= 1021; ++family) {
    const bool stock = family >= 1001 && family <= 1005;
    const bool changed = family == 1006 || family == 1007;
    EXPECT_EQ(send(device, "supportsFamily:", family) & 0xff, stock || changed) << family;
  }
  EXPECT_EQ(send(device, "maxThreadgroupMemoryLength"), 32768u);
}

TEST_F(Install, TouchesOnlyTheConcreteClass) {
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  start_device(driver_);
  objc_object other{other_}, base{base_};
  EXPECT_EQ(send(other, "supportsFamily:", 1006) & 0xff, 0u);
  EXPECT_EQ(send(base, "supportsFamily:", 1006) & 0xff, 0u);
  EXPECT_THAT(own_methods(driver_), ElementsAre("maxThreadgroupMemoryLength", "supportsFamily:"));
  EXPECT_THAT(own_methods(accelerator_), ElementsAre("hasUnifiedMemory"));
  EXPECT_EQ(lookup(base_, "supportsFamily:"), &families_to_5);
}

TEST_F(Install, NothingHappensBeforeADeviceExists) {
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  objc_object device{driver_};
  EXPECT_EQ(send(device, "supportsFamily:", 1006) & 0xff, 0u);
}

TEST_F(Install, EachDriverClassKeepsAnOriginalOfItsOwn) {
  add_method(
      other_, "maxThreadgroupMemoryLength",
      [](Id, Sel, std::int64_t) -> std::uint64_t { return 16384; }, "Q16@0:8");
  use("mdp1;all;process;none;.");  // hooks everything and changes nothing
  install_moment();
  start_device(driver_);
  start_device(other_);
  EXPECT_EQ(state.class_count, 2u);
  objc_object a{driver_}, b{other_};
  EXPECT_EQ(send(a, "maxThreadgroupMemoryLength"), 32768u);
  EXPECT_EQ(send(b, "maxThreadgroupMemoryLength"), 16384u);
}

TEST_F(Install, RepeatingIsHarmless) {
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  install_moment();
  for (int i = 0; i < 20; ++i) start_device(driver_);
  objc_object device{driver_};
  EXPECT_EQ(send(device, "supportsFamily:", 1006), 1u);
  EXPECT_EQ(send(device, "supportsFamily:", 1007) & 0xff, 0u);
  EXPECT_EQ(state.class_count, 1u);
}

// A subclass whose own method calls super must reach super's original, not itself.
TEST_F(Install, AnImplementationThatCallsSuperDoesNotRecurse) {
  objc_class* sub = add_class("AGXSpecialDevice", driver_);
  add_method(
      sub, "supportsFamily:",
      [](Id self, Sel selector, std::int64_t family) {
        const Method super = lookup(objc_getClass("AppleParavirtDevice"), "supportsFamily:");
        return super(self, selector, family);
      },
      kFamilyTypes);
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  start_device(driver_);
  start_device(sub);
  objc_object device{sub};
  EXPECT_EQ(send(device, "supportsFamily:", 1006), 1u);
  EXPECT_EQ(send(device, "supportsFamily:", 1009) & 0xff, 0u);
}

TEST_F(Install, ASubclassThatInheritsTheHookNeedsNone) {
  objc_class* sub = add_class("AGXSpecialDevice", driver_);
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  start_device(driver_);
  start_device(sub);
  EXPECT_THAT(own_methods(sub), ElementsAre());
  EXPECT_EQ(state.class_count, 1u);
}

struct Refusal {
  const char* name;
  const char* selector;
  const char* types;  ///< null: the method is not there
};
void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.name;
}
class InstallRefuses : public Install, public testing::WithParamInterface<Refusal> {};

// One of two wanted methods is not as expected: neither is hooked.
TEST_P(InstallRefuses, AllOrNothing) {
  if (GetParam().types) {
    add_method(driver_, GetParam().selector, yes, GetParam().types);
  } else {
    driver_->methods.erase(sel_registerName(GetParam().selector));
  }
  const std::string path = testing::TempDir() + "/install_refuses.journal";
  std::remove(path.c_str());
  state.journal.open(path.c_str());
  use("mdp1;all;process;host;1:1006=1;3=32768;4=1;.");
  install_moment();
  start_device(driver_);
  EXPECT_THAT((std::array{lookup(driver_, "supportsFamily:"), lookup(driver_, "hasUnifiedMemory")}),
              testing::Each(testing::AnyOf(&families_to_5, &yes)));
  const std::string journal = read_file(path);
  EXPECT_THAT(journal, HasSubstr("refused"));
  EXPECT_THAT(journal, HasSubstr(GetParam().selector));
  EXPECT_THAT(journal, Not(HasSubstr("installed")));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, InstallRefuses,
    testing::Values(Refusal{"missing", "maxThreadgroupMemoryLength", nullptr},
                    Refusal{"returns_BOOL", "maxThreadgroupMemoryLength", "B16@0:8"},
                    Refusal{"returns_a_struct", "maxThreadgroupMemoryLength", "{?=QQQ}16@0:8"},
                    Refusal{"the_other_BOOL", "supportsFamily:", "c24@0:8q16"},
                    Refusal{"no_argument", "supportsFamily:", "B16@0:8"},
                    Refusal{"object_argument", "supportsFamily:", "B24@0:8@16"},
                    Refusal{"two_arguments", "supportsFamily:", "B32@0:8q16q24"},
                    Refusal{"narrow_argument", "supportsFamily:", "B20@0:8i16"},
                    Refusal{"empty", "hasUnifiedMemory", ""}),
    testing::PrintToStringParamName());

TEST_F(Install, AnUnsignedArgumentIsTheSame) {
  add_method(driver_, "supportsFamily:", families_to_5, "B24@0:8Q16");
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  start_device(driver_);
  objc_object device{driver_};
  EXPECT_EQ(send(device, "supportsFamily:", 1006), 1u);
}

TEST_F(Install, WithoutTheMomentNothingIsChanged) {
  use("mdp1;all;process;host;1:1006=1;.");
  base_->methods.erase(sel_registerName("initGPUFamilySupport"));
  EXPECT_FALSE(install_moment());
  EXPECT_THAT(own_methods(base_), ElementsAre("supportsFamily:"));
}

TEST_F(Install, AMomentThatIsEncodedOtherwiseIsRefused) {
  use("mdp1;all;process;host;1:1006=1;.");
  for (const char* types : {"v16@0:8@", "v24@0:8q16", "B16@0:8", "v16@0:", ""}) {
    base_->methods.erase(sel_registerName("initGPUFamilySupport"));
    add_method(base_, "initGPUFamilySupport", nothing, types);
    EXPECT_FALSE(install_moment()) << types;
    EXPECT_EQ(lookup(base_, "initGPUFamilySupport"), &nothing) << types;
  }
}

TEST_F(Install, WithoutMetalNothingIsChanged) {
  reset_runtime();
  EXPECT_FALSE(install_moment());
}

TEST_F(Install, ObservingChangesNoAnswer) {
  const std::string path = testing::TempDir() + "/observe.journal";
  std::remove(path.c_str());
  state.journal.open(path.c_str());
  use("mdp1;all;process;none;.");
  install_moment();
  start_device(driver_);
  objc_object device{driver_};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(send(device, "supportsFamily:", 1007), 0u);
    EXPECT_EQ(send(device, "maxThreadgroupMemoryLength", 12345), 32768u);
    EXPECT_EQ(send(device, "hasUnifiedMemory"), 1u);
  }
  const std::string journal = read_file(path);
  EXPECT_THAT(journal, HasSubstr("\tsupportsFamily:\t1007\tno\tno\t"));
  EXPECT_THAT(journal, HasSubstr("\tmaxThreadgroupMemoryLength\t-\t32768\t32768\t"));
  EXPECT_EQ(journal.find("1007"), journal.rfind("1007")) << "each question is written once";
}

// A profile was bounded by one chip: another GPU of the process is none of its business.
TEST_F(Install, OnlyTheFirstClassIsChanged) {
  const std::string path = testing::TempDir() + "/first_class.journal";
  std::remove(path.c_str());
  state.journal.open(path.c_str());
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  start_device(driver_);
  start_device(other_);
  start_device(driver_);
  objc_object first{driver_}, second{other_};
  EXPECT_EQ(send(first, "supportsFamily:", 1006), 1u);
  EXPECT_EQ(send(second, "supportsFamily:", 1006) & 0xff, 0u);
  EXPECT_THAT(own_methods(other_), ElementsAre());
  EXPECT_THAT(read_file(path), HasSubstr("\tAGXG13XDevice\trefused\t"));
}

TEST_F(Install, MoreClassesThanHooksAreNotWatched) {
  const std::string path = testing::TempDir() + "/many_classes.journal";
  std::remove(path.c_str());
  state.journal.open(path.c_str());
  use("mdp1;all;process;none;.");
  install_moment();
  for (std::size_t i = 0; i <= kMaxClasses; ++i) {
    objc_class* cls = add_class("Driver" + std::to_string(i), base_);
    start_device(cls);
    start_device(cls);
    EXPECT_EQ(own_methods(cls).empty(), i >= kMaxClasses) << i;
  }
}

// Our own test program is an image outside the shared cache, or no Mach-O image at all.
TEST_F(Install, JournalNamesTheCaller) {
  const std::string path = testing::TempDir() + "/caller.journal";
  std::remove(path.c_str());
  state.journal.open(path.c_str());
  use("mdp1;all;process;host;1:1006=1;.");
  install_moment();
  start_device(driver_);
  objc_object device{driver_};
  send(device, "supportsFamily:", 1006);
  EXPECT_THAT(read_file(path), HasSubstr("unit_shim_dylib"));
}

}  // namespace
}  // namespace metaldoctor::shim
