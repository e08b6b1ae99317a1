#include "scanners/device/log_values.h"

#include <gtest/gtest.h>

namespace metaldoctor {
namespace {

TEST(LogValues, Family) {
  const auto family = log_family("MTLGPUFamilyApple7 (1007)");
  ASSERT_TRUE(family);
  EXPECT_EQ(family->line, "Apple");
  EXPECT_EQ(family->value, 1007);
  EXPECT_EQ(log_family("MTLGPUFamilyMetal4 (5002)")->value, 5002);
  EXPECT_EQ(log_family("MTLGPUFamilyApple21 (1021)")->value, 1021);
  for (const char* bad :
       {"", "MTLGPUFamilyApple7", "MTLGPUFamilyApple7 (", "MTLGPUFamilyApple7 (1007",
        "MTLGPUFamilyApple7 (100)", "MTLGPUFamilyApple7 (1008)", "MTLGPUFamilyMetal3 (5003)",
        "MTLGPUFamilyApple7 (1007) x", "MTLGPUFamilyApple (1007)", "MTLGPUFamily7 (1007)",
        "xMTLGPUFamilyApple7 (1007)", "MTLGPUFamilyApple7 (99999999999999999999)",
        "MTLGPUFamilyApple7 (+1007)", "MTLGPUFamilyApple7  1007"}) {
    EXPECT_FALSE(log_family(bad)) << bad;
  }
}

TEST(LogValues, FamilyLineOfADamagedText) {
  EXPECT_EQ(log_family_line("MTLGPUFamilyApple7 (10"), "Apple");
  EXPECT_EQ(log_family_line("MTLGPUFamilyCommon3"), "Common");
  EXPECT_EQ(log_family_line("MTLGPUFamilyAppl"), "") << "may have been cut";
  EXPECT_EQ(log_family_line("nothing"), "");
}

TEST(LogValues, Device) {
  struct Row {
    std::string_view text;
    bool terminated;
    std::string_view id, name;
  };
  for (const Row& row :
       {Row{"MTL0 (Apple M1 Ultra)", false, "MTL0", "Apple M1 Ultra"},
        Row{"MTL12", true, "MTL12", ""}, Row{"Apple M1", true, "", "Apple M1"},
        Row{"Metal (Apple M1)", true, "Metal", "Apple M1"},
        Row{"Intel(R) Iris(TM) Graphics 6000", true, "", "Intel(R) Iris(TM) Graphics 6000"},
        Row{"MTL0 (Intel(R) Iris(TM))", true, "MTL0", "Intel(R) Iris(TM)"}}) {
    const auto device = log_device(row.text, row.terminated);
    ASSERT_TRUE(device) << row.text;
    EXPECT_EQ(device->id, row.id);
    EXPECT_EQ(device->name, row.name);
  }
  for (const char* bad : {"MTL0 (Apple M1", "MTL0 (Intel(R)", "MTL0 Apple", "MTL0 (A) (B)", "",
                          "Apple \x80", "Apple \x01", "MTL0 ()"}) {
    EXPECT_FALSE(log_device(bad, true)) << bad;
  }
  EXPECT_FALSE(log_device("Apple M1", false)) << "'Apple M1 Ultra' may have been cut";
  EXPECT_FALSE(log_device("MTL1", false)) << "'MTL12' may have been cut";
}

TEST(LogValues, UsedDevice) {
  EXPECT_EQ(log_used_device("MTL0 (Apple M4) (unknown id) - 12123 MiB free")->name, "Apple M4");
  EXPECT_EQ(log_used_device("Metal (Apple M2 Ultra) - 21845 MiB free")->name, "Apple M2 Ultra");
  EXPECT_EQ(log_used_device("CUDA0 (NVIDIA) - 1 MiB free")->name, "");
  EXPECT_FALSE(log_used_device("MTL0 (Apple"));
}

TEST(LogValues, Scalars) {
  EXPECT_EQ(log_bool("= true"), true);
  EXPECT_EQ(log_bool("= false"), false);
  for (const char* bad : {"= tru", "= TRUE", "true", "= truex", "= true x", ""}) {
    EXPECT_FALSE(log_bool(bad)) << bad;
  }
  EXPECT_EQ(log_megabytes("= 5461.34 MB"), "5461.34");
  EXPECT_EQ(log_megabytes("= 5461,34 MB"), "5461.34") << "a locale's decimal comma";
  for (const char* bad : {"= 5461.3 MB", "= .34 MB", "= 5461 MB", "= 5461.34 M", "= 54x1.34 MB",
                          "= 1.2.34 MB", "= 11111111111111.34 MB"}) {
    EXPECT_FALSE(log_megabytes(bad)) << bad;
  }
  EXPECT_EQ(log_quoted("'RMS_NORM'"), "RMS_NORM");
  EXPECT_FALSE(log_quoted("'RMS_NORM"));
  EXPECT_FALSE(log_quoted("''"));
  EXPECT_EQ(log_skipped("kernel_soft_max (not supported)"), "kernel_soft_max");
  EXPECT_FALSE(log_skipped("kernel_soft_max (not supp"));
  EXPECT_EQ(log_integer("= 1"), 1);
  EXPECT_FALSE(log_integer("= 1x"));
}

TEST(LogValues, Banner) {
  const auto banner = log_banner("llama-bench (appleFamilyMax=1009 maxThreadgroupMemory=65536)");
  ASSERT_TRUE(banner);
  EXPECT_EQ(banner->program, "llama-bench");
  ASSERT_EQ(banner->settings.size(), 2u);
  EXPECT_EQ(banner->settings[1],
            (std::pair<std::string, std::int64_t>{"maxThreadgroupMemory", 65536}));
  for (const char* bad : {"llama-bench (appleFamilyMax=1009", "llama-bench (a=)", "x (=1)",
                          "x (a b)", "llama-bench"}) {
    EXPECT_FALSE(log_banner(bad)) << bad;
  }
}

TEST(LogValues, Printable) {
  EXPECT_TRUE(is_printable("Apple M1"));
  EXPECT_TRUE(is_printable("AMD Radeon\xe2\x84\xa2"));
  for (const char* bad : {"", "\x7f", "a\tb", "\xff", "\xc0\x80", "\xe2\x84", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xe0\x80\x80"}) {
    EXPECT_FALSE(is_printable(bad));
  }
  EXPECT_FALSE(is_printable(std::string(300, 'a')));
}

}  // namespace
}  // namespace metaldoctor
