#include "tables/document.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <unordered_set>
#include <vector>

namespace metaldoctor {
namespace {

/// Feeds the lexer and lets the checks see how far it has read: SAX events carry no position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*read_;
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* read_;
};

/// Reads the document once without building it, so that nothing that breaks a bound is ever
/// allocated. The parser underneath keeps its own stack on the heap: depth cannot overflow ours.
class BoundsCheck {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  BoundsCheck(const DocumentLimits& limits, const std::size_t& read)
      : limits_(limits), read_(read) {}

  bool null() { return count(); }
  bool boolean(bool) { return count(); }
  bool number_integer(number_integer_t value) {
    return value < -kLargestInteger ? too_large() : count();
  }
  bool number_unsigned(number_unsigned_t value) {
    return value > static_cast<number_unsigned_t>(kLargestInteger) ? too_large() : count();
  }
  bool number_float(number_float_t value, const string_t& text) {
    if (!std::isfinite(value)) return refuse("json-number", "a number is not finite");
    // An integer that does not fit 64 bits arrives here; so does 1e3, which is a number like any.
    const bool written_as_integer = text.find_first_of(".eE") == string_t::npos;
    return written_as_integer ? too_large() : count();
  }
  bool string(string_t&) { return count(); }
  bool binary(binary_t&) { return refuse("json-syntax", "binary values are not JSON"); }
  bool start_object(std::size_t) { return open(true); }
  bool key(string_t& name) {
    auto& keys = keys_.back();
    if (!keys.insert(name).second) {
      return refuse("json-duplicate-key", fmt::format("the key '{}' appears twice", name));
    }
    if (keys.size() > limits_.members) {
      return refuse("json-too-large",
                    fmt::format("an object has more than {} members", limits_.members));
    }
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(false); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    const std::string_view text = e.what();  // "[json.exception.parse_error.101] parse error ..."
    const std::size_t start = text.find("] ");
    offset = position;
    code = "json-syntax";
    what = start == std::string_view::npos ? text : text.substr(start + 2);
    return false;
  }

  std::string code;  ///< empty = nothing wrong so far
  std::string what;
  std::size_t offset = 0;

 private:
  static constexpr Json::number_integer_t kLargestInteger = Json::number_integer_t{1} << 53;

  bool refuse(std::string_view fault, std::string text) {
    code = fault;
    what = std::move(text);
    offset = read_;
    return false;
  }
  bool too_large() {
    return refuse("json-number", "an integer is beyond 2^53; write it as a decimal string");
  }
  bool count() {
    if (++values_ <= limits_.values) return true;
    return refuse("json-too-large", fmt::format("more than {} values", limits_.values));
  }
  bool open(bool object) {
    if (++depth_ > limits_.depth) {
      return refuse("json-too-deep", fmt::format("nested deeper than {} levels", limits_.depth));
    }
    objects_.push_back(object);
    if (object) keys_.emplace_back();
    return count();
  }
  bool close() {
    if (objects_.back()) keys_.pop_back();
    objects_.pop_back();
    --depth_;
    return true;
  }

  const DocumentLimits& limits_;
  const std::size_t& read_;
  std::size_t depth_ = 0;
  std::size_t values_ = 0;
  std::vector<bool> objects_;                          ///< the open containers: is it an object?
  std::vector<std::unordered_set<std::string>> keys_;  ///< of each open object
};

std::string at_offset(std::string_view name, std::size_t offset) {
  return fmt::format("{}: offset {:#x}", name, offset);
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name, DocumentLimits limits) {
  if (text.size() > limits.bytes) {
    return fail(Fault::input, "json-too-large", std::string(name),
                fmt::format("the document has {} bytes, the reader takes at most {}", text.size(),
                            limits.bytes));
  }
  std::size_t read = 0;
  BoundsCheck check(limits, read);
  const CountingIterator begin(text.data(), &read);
  const CountingIterator end(text.data() + text.size(), &read);
  if (!Json::sax_parse(begin, end, &check)) {
    return fail(Fault::input, check.code, at_offset(name, check.offset), check.what);
  }
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return fail(Fault::bug, "json-readers-disagree", std::string(name),
                "the document passed the bounds check and did not parse");
  }
  return document;
}

Result<Json> read_document(std::string_view text, std::string_view kind, std::string_view name) {
  auto document = parse_json(text, name);
  if (!document) return document;
  const std::string expected = fmt::format("metaldoctor.{}/1", kind);
  const auto schema = document->is_object() ? document->find("schema") : document->end();
  if (!document->is_object() || schema == document->end() || !schema->is_string()) {
    return fail(Fault::input, "document-schema", fmt::format("{}: /schema", name),
                fmt::format("expected a document with \"schema\": \"{}\"", expected));
  }
  if (schema->get_ref<const std::string&>() != expected) {
    return fail(Fault::input, "document-schema", fmt::format("{}: /schema", name),
                fmt::format("expected \"{}\", found \"{}\"", expected,
                            schema->get_ref<const std::string&>().substr(0, 80)));
  }
  if (auto valid = validate_document(*document, kind, name); !valid) {
    return tl::unexpected(valid.error());
  }
  return document;
}

}  // namespace metaldoctor
