// corpus_dump FILE: "image ARCH MEMBER" and the one-line dump of each slice, for check_sites.py.
#include <fmt/format.h>

#include <cstdio>

#include "tests/unit/code/support.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto bytes = metaldoctor::testing::read_file(argv[1]);
  for (const auto& findings : metaldoctor::testing::audit_file(bytes, argv[1]))
    fmt::print("image {} {}\n{}", findings.image.arch, findings.image.member, dump(findings));
  return 0;
}
