#include "shim/inject/plist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <plist/plist.h>

#include <algorithm>
#include <cstdlib>

#include "shim/inject/plist_bounds.h"

namespace metaldoctor {
namespace {

using Node = std::unique_ptr<void, decltype(&plist_free)>;

/// The C strings that libplist hands out are the caller's to free.
std::string taken(char* text) {
  std::string out = text ? text : "";
  std::free(text);
  return out;
}

std::string text_of_node(plist_t node) {
  char* text = nullptr;
  plist_get_string_val(node, &text);
  return taken(text);
}

template <typename Visit>
void each_member(plist_t dictionary, Visit visit) {
  plist_dict_iter at = nullptr;
  plist_dict_new_iter(dictionary, &at);
  const std::unique_ptr<void, decltype(&std::free)> owner(at, &std::free);
  for (;;) {
    char* key = nullptr;
    plist_t value = nullptr;
    plist_dict_next_item(dictionary, at, &key, &value);
    if (!value) break;
    visit(taken(key), value);
  }
}

template <typename Visit>
void each_element(plist_t array, Visit visit) {
  plist_array_iter at = nullptr;
  plist_array_new_iter(array, &at);
  const std::unique_ptr<void, decltype(&std::free)> owner(at, &std::free);
  for (;;) {
    plist_t value = nullptr;
    plist_array_next_item(array, at, &value);
    if (!value) break;
    visit(value);
  }
}

/// Length of the UTF-8 sequence at the start of `text`, 0 for anything else.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned c = byte(0);
  const std::size_t length = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = length > 1 ? byte(1) : 0;
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  const bool bad = (c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
                   (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f);
  return bad ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// libplist hands damaged texts on and would write other ones in their place.
bool has_whole_texts(plist_t node) {
  bool whole = true;
  switch (plist_get_node_type(node)) {
    case PLIST_STRING:
      return is_utf8(text_of_node(node));
    case PLIST_ARRAY:
      each_element(node, [&](plist_t child) { whole = whole && has_whole_texts(child); });
      return whole;
    case PLIST_DICT:
      each_member(node, [&](const std::string& key, plist_t child) {
        whole = whole && is_utf8(key) && has_whole_texts(child);
      });
      return whole;
    default:
      return true;
  }
}

/// None when it is nested deeper than `depth`.
std::optional<std::string> line_of(plist_t node, std::size_t depth) {
  if (depth == 0) return std::nullopt;
  bool whole = true;
  const auto below = [&](plist_t child) {
    auto text = line_of(child, depth - 1);
    whole = whole && text;
    return text.value_or(std::string());
  };
  std::string out;
  switch (plist_get_node_type(node)) {
    case PLIST_BOOLEAN: {
      std::uint8_t truth = 0;
      plist_get_bool_val(node, &truth);
      return truth ? "true" : "false";
    }
    case PLIST_UINT: {
      std::uint64_t value = 0;
      plist_get_uint_val(node, &value);
      return fmt::format("{}", static_cast<std::int64_t>(value));
    }
    case PLIST_STRING:
      return quoted_text(text_of_node(node));
    case PLIST_ARRAY: {
      std::vector<std::string> parts;
      each_element(node, [&](plist_t child) { parts.push_back(below(child)); });
      out = fmt::format("[{}]", fmt::join(parts, ","));
      break;
    }
    case PLIST_DICT: {
      std::map<std::string, std::string> parts;
      each_member(node, [&](const std::string& key, plist_t child) { parts[key] = below(child); });
      for (const auto& [key, value] : parts) {
        out += fmt::format("{}{}:{}", out.empty() ? "" : ",", quoted_text(key), value);
      }
      out = '{' + out + '}';
      break;
    }
    default:
      return "other";
  }
  return whole ? std::optional(out) : std::nullopt;
}

}  // namespace

struct Plist::Impl {
  Node root{nullptr, &plist_free};
  bool binary = false;

  plist_t item(const std::string& key) const {
    return plist_dict_get_item(root.get(), key.c_str());
  }
  plist_t dictionary(const std::string& key) const {
    const plist_t node = item(key);
    return node && plist_get_node_type(node) == PLIST_DICT ? node : nullptr;
  }
};

namespace {

std::optional<std::string> text_or_nothing(plist_t node) {
  if (!node || plist_get_node_type(node) != PLIST_STRING) return std::nullopt;
  return text_of_node(node);
}

}  // namespace

Plist::Plist(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Plist::Plist(Plist&&) noexcept = default;
Plist& Plist::operator=(Plist&&) noexcept = default;
Plist::~Plist() = default;

Result<Plist> Plist::read(std::string_view bytes, const std::string& name,
                          const PlistLimits& limits) {
  const auto refuse = [&](std::string what) {
    return fail(Fault::input, "plist-malformed", name, std::move(what));
  };
  if (std::string problem = exceeds_bounds(bytes, limits); !problem.empty()) {
    return refuse("is no property list of a size that is read: " + problem);
  }
  auto impl = std::make_unique<Impl>();
  impl->binary = bytes.starts_with(kBinaryPlist);
  const std::string owned(bytes);  // libplist looks for the NUL behind the text
  plist_t root = nullptr;
  if (impl->binary) {
    plist_from_bin(owned.data(), static_cast<std::uint32_t>(owned.size()), &root);
  } else {
    plist_from_xml(owned.data(), static_cast<std::uint32_t>(owned.size()), &root);
  }
  impl->root.reset(root);
  if (!root) return refuse("is no property list, neither in XML nor binary");
  if (plist_get_node_type(root) != PLIST_DICT) return refuse("expected a dictionary at its root");
  if (!line_of(root, limits.depth)) {
    return refuse(fmt::format("is nested more than {} deep", limits.depth));
  }
  if (!has_whole_texts(root)) return refuse("holds a text that is not UTF-8");
  return Plist(std::move(impl));
}

Plist Plist::empty() {
  auto impl = std::make_unique<Impl>();
  impl->root.reset(plist_new_dict());
  return Plist(std::move(impl));
}

std::map<std::string, std::string> Plist::values() const {
  std::map<std::string, std::string> out;
  each_member(impl_->root.get(), [&](const std::string& key, plist_t node) {
    out[key] = line_of(node, PlistLimits().depth).value_or("other");
  });
  return out;
}

std::optional<std::string> Plist::text(const std::string& key) const {
  return text_or_nothing(impl_->item(key));
}

std::optional<std::string> Plist::text(const std::string& in, const std::string& key) const {
  const plist_t dictionary = impl_->dictionary(in);
  return dictionary ? text_or_nothing(plist_dict_get_item(dictionary, key.c_str())) : std::nullopt;
}

std::optional<std::vector<std::string>> Plist::texts(const std::string& key) const {
  const plist_t node = impl_->item(key);
  if (!node || plist_get_node_type(node) != PLIST_ARRAY) return std::nullopt;
  std::vector<std::string> out;
  bool all = true;
  each_element(node, [&](plist_t child) {
    const auto text = text_or_nothing(child);
    all = all && text;
    out.push_back(text.value_or(std::string()));
  });
  return all ? std::optional(std::move(out)) : std::nullopt;
}

bool Plist::has(const std::string& key) const {
  return impl_->item(key) != nullptr;
}

bool Plist::has_dictionary(const std::string& key) const {
  return impl_->dictionary(key) != nullptr;
}

void Plist::set_text(const std::string& key, const std::string& value) {
  plist_dict_set_item(impl_->root.get(), key.c_str(), plist_new_string(value.c_str()));
}

void Plist::set_text(const std::string& in, const std::string& key, const std::string& value) {
  plist_t dictionary = impl_->dictionary(in);
  if (!dictionary) {
    dictionary = plist_new_dict();
    plist_dict_set_item(impl_->root.get(), in.c_str(), dictionary);
  }
  plist_dict_set_item(dictionary, key.c_str(), plist_new_string(value.c_str()));
}

void Plist::set_truth(const std::string& key, bool value) {
  plist_dict_set_item(impl_->root.get(), key.c_str(), plist_new_bool(value));
}

void Plist::set_texts(const std::string& key, const std::vector<std::string>& values) {
  const plist_t array = plist_new_array();
  for (const std::string& value : values) {
    plist_array_append_item(array, plist_new_string(value.c_str()));
  }
  plist_dict_set_item(impl_->root.get(), key.c_str(), array);
}

std::string Plist::write() const {
  char* text = nullptr;
  std::uint32_t size = 0;
  if (impl_->binary) {
    plist_to_bin(impl_->root.get(), &text, &size);
  } else {
    plist_to_xml(impl_->root.get(), &text, &size);
  }
  std::string out(text ? text : "", size);
  std::free(text);
  return out;
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

bool fits_plist(std::string_view text) {
  const bool printable = std::ranges::all_of(text, [](unsigned char c) {
    return (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n';  // XML turns a CR into a LF
  });
  return printable && is_utf8(text);
}

}  // namespace metaldoctor
