// Any bytes as a capture and as a profile: a message or a document, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tables/document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = metaldoctor::parse_json(text, "fuzz");
  if (!document) return 0;
  (void)metaldoctor::validate_document(*document, "capture", "fuzz");
  (void)metaldoctor::validate_document(*document, "profile", "fuzz");
  return 0;
}
