#include "shim/inject/entitlements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shim/inject/plist.h"

namespace metaldoctor {
namespace {

constexpr std::uint8_t kApplication = 0x70, kDictionary = 0xb0, kSequence = 0x30, kBoolean = 0x01,
                       kInteger = 0x02, kText = 0x0c;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr unsigned kMostDepth = 16;

struct Element {
  std::uint8_t tag = 0;
  Bytes contents;
};

/// Elements one after another; DER, so every length has one spelling.
class DerReader {
 public:
  explicit DerReader(Bytes bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  std::optional<Element> next() {
    if (rest_.size() < 2) return std::nullopt;
    std::size_t header = 2;
    std::uint64_t length = rest_[1];
    if (length >= 0x80) {
      const std::size_t count = length & 0x7f;
      if (count == 0 || count > 4 || rest_.size() < 2 + count) return std::nullopt;
      length = 0;
      for (std::size_t i = 0; i < count; ++i) length = length << 8 | rest_[2 + i];
      if (length < 0x80 || rest_[2] == 0) return std::nullopt;
      header += count;
    }
    if (length > rest_.size() - header) return std::nullopt;
    const Element element{rest_[0], rest_.subspan(header, length)};
    rest_ = rest_.subspan(header + length);
    return element;
  }
  std::optional<Element> next(std::uint8_t tag) {
    const auto element = next();
    return element && element->tag == tag ? element : std::nullopt;
  }

 private:
  Bytes rest_;
};

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::string> value_text(const Element& element, unsigned depth);

std::optional<std::map<std::string, std::string>> members(Bytes bytes, unsigned depth) {
  std::map<std::string, std::string> out;
  for (DerReader entries(bytes); !entries.at_end();) {
    const auto entry = entries.next(kSequence);
    if (!entry) return std::nullopt;
    DerReader pair(entry->contents);
    const auto key = pair.next(kText);
    const auto value = key ? pair.next() : std::nullopt;
    auto text = value && pair.at_end() ? value_text(*value, depth) : std::nullopt;
    if (!text || !out.emplace(text_of(key->contents), std::move(*text)).second) {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> integer_text(Bytes contents) {
  if (contents.empty() || contents.size() > 8) return std::nullopt;
  std::uint64_t value = contents[0] & 0x80 ? ~std::uint64_t{0} : 0;
  for (const std::uint8_t byte : contents) value = value << 8 | byte;
  return fmt::format("{}", static_cast<std::int64_t>(value));
}

std::optional<std::string> value_text(const Element& element, unsigned depth) {
  if (depth == 0) return std::nullopt;
  if (element.tag == kBoolean) {
    if (element.contents.size() != 1) return std::nullopt;
    return element.contents[0] != 0 ? "true" : "false";
  }
  if (element.tag == kInteger) return integer_text(element.contents);
  if (element.tag == kText) return quoted_text(text_of(element.contents));
  if (element.tag == kSequence) {
    std::vector<std::string> parts;
    for (DerReader items(element.contents); !items.at_end();) {
      const auto item = items.next();
      auto text = item ? value_text(*item, depth - 1) : std::nullopt;
      if (!text) return std::nullopt;
      parts.push_back(std::move(*text));
    }
    return fmt::format("[{}]", fmt::join(parts, ","));
  }
  if (element.tag != kDictionary) return std::nullopt;
  const auto entries = members(element.contents, depth - 1);
  if (!entries) return std::nullopt;
  std::string out;
  for (const auto& [key, value] : *entries) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", quoted_text(key), value);
  }
  return '{' + out + '}';
}

}  // namespace

Result<std::map<std::string, std::string>> read_der_entitlements(Bytes der,
                                                                 const std::string& where) {
  const auto damaged = [&] {
    return fail(Fault::input, "entitlements-malformed", where,
                "expected DER entitlements of version 1");
  };
  if (der.size() > kMostBytes) return damaged();
  DerReader file(der);
  const auto whole = file.next(kApplication);
  if (!whole || !file.at_end()) return damaged();
  DerReader parts(whole->contents);
  const auto version = parts.next(kInteger);
  const auto dictionary = version ? parts.next(kDictionary) : std::nullopt;
  if (!dictionary || integer_text(version->contents) != "1" || !parts.at_end()) return damaged();
  auto values = members(dictionary->contents, kMostDepth);
  if (!values) return damaged();
  return std::move(*values);
}

Entitlements read_entitlements(const CodeSignature& signature, const std::string& where) {
  Entitlements out;
  const auto damaged = [&](const Diagnostic& error) {
    out.state = Entitlements::State::damaged;
    out.reason = error.what;
  };
  std::map<std::string, std::string> xml;
  if (!signature.entitlements.empty()) {
    out.state = Entitlements::State::read;
    const auto plist = Plist::read(signature.entitlements, where + ": entitlements");
    if (!plist) {
      damaged(plist.error());
      return out;
    }
    xml = out.values = plist->values();
  }
  if (signature.entitlements_der.empty()) return out;
  out.state = Entitlements::State::read;
  auto der = read_der_entitlements(signature.entitlements_der, where);
  if (!der) {
    damaged(der.error());
    return out;
  }
  out.values = std::move(*der);
  if (!signature.entitlements.empty() && xml != out.values) {
    out.state = Entitlements::State::differ;
    out.reason = "the XML and the DER form of the entitlements say different things";
  }
  return out;
}

}  // namespace metaldoctor
