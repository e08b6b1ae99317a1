// corpus_dump FILE: the one-line dump of each arm64 slice, for check_sites.py.
#include <cstdio>

#include "tests/unit/code/support.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto bytes = metaldoctor::testing::read_file(argv[1]);
  for (const auto& findings : metaldoctor::testing::audit_file(bytes, argv[1]))
    std::fputs(dump(findings).c_str(), stdout);
  return 0;
}
