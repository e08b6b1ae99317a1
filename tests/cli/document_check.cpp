// document_check KIND FILE: reads a document as every command does. Exit status 0 if it is valid.
// document_check --schema SCHEMA FILE: against a schema that is not ours; 77 without the schema.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tables/document.h"
#include "tables/schema_validator.h"

namespace {

std::string text_of(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

int check_with(const char* schema_path, const char* path) {
  const std::string schema = text_of(schema_path);
  if (schema.empty()) {
    fmt::print("SKIPPED: {} is not there; run tests/corpus/fetch.py\n", schema_path);
    return 77;
  }
  const auto document = metaldoctor::parse_json(text_of(path), path);
  const auto valid = document ? metaldoctor::validate_with(*document, schema, path)
                              : metaldoctor::Result<void>(tl::unexpected(document.error()));
  if (valid) return 0;
  fmt::print("{}: {}\n", valid.error().where, valid.error().what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && argv[1] == std::string("--schema")) return check_with(argv[2], argv[3]);
  if (argc != 3) return 2;
  const std::string text = text_of(argv[2]);
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
