// document_check KIND FILE: reads a document as every command does. Exit status 0 if it is valid.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tables/document.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream in(argv[2]);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto read = metaldoctor::read_document(text, argv[1], argv[2]);
  if (!read) {
    fmt::print("{}: {}\n", read.error().where, read.error().what);
    return 1;
  }
  // An audit holds documents of another kind.
  for (const auto& image : read->value("images", metaldoctor::Json::array())) {
    const auto valid = metaldoctor::validate_document(image.at("findings"), "findings", argv[2]);
    if (valid) continue;
    fmt::print("{}: {}\n", valid.error().where, valid.error().what);
    return 1;
  }
  return 0;
}
