// Usage: table_file NAME PATH. Checks one file of tables/data and prints what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tables/embedded_file.h"
#include "tables/tables.h"

namespace {

constexpr std::size_t kLargest = 600 * 1000;  // a table that grows beyond this is read by nobody

int failure(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return failure("usage: table_file NAME PATH");
  const std::string name = argv[1];
  std::ifstream in(argv[2], std::ios::binary);
  const std::string on_disk((std::istreambuf_iterator<char>(in)), {});
  if (on_disk.size() > kLargest) return failure(name + ": too large");

  const auto files = metaldoctor::embedded_tables();
  const auto embedded = std::find_if(files.begin(), files.end(),
                                     [&](const auto& file) { return file.name == "data/" + name; });
  if (embedded == files.end()) return failure(name + ": not embedded");
  if (embedded->bytes != on_disk) return failure(name + ": the embedded copy is another one");

  const auto tables = metaldoctor::Tables::embedded();
  for (const auto& report : tables->validate()) {
    if (report.name != name) continue;
    for (const auto& problem : report.problems) {
      fmt::print(stderr, "{}: {} [{}]\n", problem.where, problem.what, problem.code);
    }
    fmt::print("{}: {} rows, {}\n", name, report.rows, report.schema);
    return report.problems.empty() && report.rows > 0 ? 0 : 1;
  }
  return failure(name + ": no report");
}
