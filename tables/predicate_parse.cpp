// Recursive descent over the grammar in predicate.h.
#include <algorithm>
#include <charconv>
#include <string>

#include "tables/predicate_node.h"

namespace metaldoctor {
namespace detail {
namespace {

using Kind = Predicate::Node::Kind;
using Parsed = Result<NodePtr>;

struct Token {
  enum class Type { end, integer, string, name, symbol, bad } type = Type::end;
  std::string_view text;  ///< as written; a string without its quotes
  std::size_t offset = 0;
  std::string value;  ///< string: escapes resolved; bad: what is wrong
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    const std::size_t start = at_;
    if (start == text_.size()) return {Token::Type::end, {}, start, {}};
    const char c = text_[start];
    if (c == '\'') return string();
    if (is_digit(c)) return span(Token::Type::integer, is_digit);
    if (is_name(c)) return span(Token::Type::name, is_name);
    for (std::size_t length : {std::size_t{2}, std::size_t{1}}) {
      const std::string_view symbol = text_.substr(start, length);
      if (symbol.size() != length) continue;
      if (!find_operator(symbol) && symbol != "(" && symbol != ")" && symbol != ",") continue;
      at_ += length;
      return {Token::Type::symbol, symbol, start, {}};
    }
    return {Token::Type::bad, text_.substr(start, 1), start, "a character that no expression has"};
  }

 private:
  Token span(Token::Type type, bool (*belongs)(char)) {
    const std::size_t start = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return {type, text_.substr(start, at_ - start), start, {}};
  }

  Token string() {
    const std::size_t start = at_++;
    std::string value;
    for (; at_ < text_.size() && text_[at_] != '\''; ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      value += text_[at_];
    }
    if (at_ >= text_.size()) return {Token::Type::bad, {}, start, "a string without its end"};
    ++at_;
    return {Token::Type::string, text_.substr(start, at_ - start), start, std::move(value)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : lexer_(text), where_(where) { advance(); }

  Parsed parse() {
    Parsed root = any();
    if (root && token_.type != Token::Type::end) return expected("the end of the expression");
    return root;
  }

 private:
  void advance() { token_ = lexer_.next(); }
  bool is_symbol(std::string_view text) const {
    return token_.type == Token::Type::symbol && token_.text == text;
  }
  bool is_word(std::string_view text) const {
    return token_.type == Token::Type::name && token_.text == text;
  }

  Parsed error(std::size_t offset, std::string what) const {
    return fail(Fault::input, "predicate-syntax",
                std::string(where_) + ": offset " + std::to_string(offset), std::move(what));
  }
  Parsed expected(std::string_view what) const {
    std::string found = "the end";
    if (token_.type == Token::Type::bad) found = token_.value;
    if (token_.type != Token::Type::bad && token_.type != Token::Type::end) {
      found = "'" + std::string(token_.text.substr(0, 40)) + "'";
    }
    return error(token_.offset, "expected " + std::string(what) + ", found " + found);
  }
  Parsed build(std::size_t offset, Predicate::Node node, std::vector<NodePtr> children) const {
    NodePtr made = parent_node(std::move(node), std::move(children));
    if (!made) return error(offset, std::string(kTooLarge));
    return made;
  }

  Parsed any() { return list(Kind::any, "or", &Parser::all); }
  Parsed all() { return list(Kind::all, "and", &Parser::negation); }

  Parsed list(Kind kind, std::string_view word, Parsed (Parser::*part)()) {
    const std::size_t offset = token_.offset;
    Parsed first = (this->*part)();
    if (!first || !is_word(word)) return first;
    std::vector<NodePtr> parts{*std::move(first)};
    while (is_word(word)) {
      advance();
      Parsed next = (this->*part)();
      if (!next) return next;
      parts.push_back(*std::move(next));
    }
    Predicate::Node node;
    node.kind = kind;
    return build(offset, std::move(node), std::move(parts));
  }

  Parsed negation() {
    if (!is_word("not")) return comparison();
    const std::size_t offset = token_.offset;
    advance();
    Parsed inner = nested(&Parser::negation);
    if (!inner) return inner;
    Predicate::Node node;
    node.kind = Kind::negation;
    return build(offset, std::move(node), {*std::move(inner)});
  }

  Parsed comparison() {
    Parsed left = sum();
    if (!left || !operator_here(Binding::comparison)) return left;
    return binary(Kind::compare, *std::move(left), &Parser::sum);
  }

  Parsed sum() { return chain(Binding::sum, &Parser::product); }
  Parsed product() { return chain(Binding::product, &Parser::primary); }

  Parsed chain(Binding binding, Parsed (Parser::*part)()) {
    Parsed left = (this->*part)();
    while (left && operator_here(binding)) {
      left = binary(Kind::arithmetic, *std::move(left), part);
    }
    return left;
  }

  const OperatorText* operator_here(Binding binding) const {
    if (token_.type != Token::Type::symbol) return nullptr;
    const OperatorText* op = find_operator(token_.text);
    return op && op->binding == binding ? op : nullptr;
  }

  Parsed binary(Kind kind, NodePtr left, Parsed (Parser::*part)()) {
    const std::size_t offset = token_.offset;
    Predicate::Node node;
    node.kind = kind;
    node.op = find_operator(token_.text)->op;
    advance();
    Parsed right = (this->*part)();
    if (!right) return right;
    return build(offset, std::move(node), {std::move(left), *std::move(right)});
  }

  Parsed primary() {
    if (is_symbol("(")) return parenthesised();
    if (is_word("true") || is_word("false")) {
      const bool value = is_word("true");
      advance();
      return constant_node(value);
    }
    if (token_.type == Token::Type::name && !is_word("and") && !is_word("or")) return call();
    auto value = literal("a value, a call or '('");
    if (!value) return tl::unexpected(std::move(value).error());
    return constant_node(*std::move(value));
  }

  Parsed parenthesised() {
    advance();
    Parsed inner = nested(&Parser::any);
    if (!inner) return inner;
    if (!is_symbol(")")) return expected("')'");
    advance();
    return inner;
  }

  Result<Value> literal(std::string_view what) {
    if (token_.type == Token::Type::string) {
      if (auto problem = string_problem(token_.value)) {
        return tl::unexpected(error(token_.offset, *std::move(problem)).error());
      }
      Value text = std::move(token_.value);
      advance();
      return text;
    }
    const bool negative = is_symbol("-");
    const std::size_t offset = token_.offset;
    if (negative) advance();
    if (token_.type != Token::Type::integer) return tl::unexpected(expected(what).error());
    std::int64_t number = 0;
    const auto [end, code] =
        std::from_chars(token_.text.data(), token_.text.data() + token_.text.size(), number);
    if (code != std::errc{} || number > kMaxInteger) {
      return tl::unexpected(error(offset, "an integer lies in -2^53..2^53").error());
    }
    advance();
    return Value{negative ? -number : number};
  }

  Parsed call() {
    const std::size_t offset = token_.offset;
    Call call{std::string(token_.text), nullptr, {}};
    advance();
    if (!is_symbol("(")) return expected("'(' after " + call.name.substr(0, 40));
    advance();
    bool more = !is_symbol(")");
    if (more && takes_expression(call.name)) {
      Parsed inner = nested(&Parser::any);
      if (!inner) return inner;
      call.inner = *std::move(inner);
      more = is_symbol(",");
      if (more) advance();
    }
    while (more) {
      auto value = literal("an integer or a string");
      if (!value) return tl::unexpected(std::move(value).error());
      if (call.literals.size() == kMaxArguments) return error(offset, "too many arguments");
      call.literals.push_back(*std::move(value));
      more = is_symbol(",");
      if (more) advance();
    }
    if (!is_symbol(")")) return expected("',' or ')'");
    advance();
    auto node = node_of(call);
    if (!node) return error(offset, std::move(node).error());
    return *std::move(node);
  }

  Parsed nested(Parsed (Parser::*part)()) {
    if (depth_ >= kMaxDepth) return error(token_.offset, std::string(kTooLarge));
    ++depth_;
    Parsed result = (this->*part)();
    --depth_;
    return result;
  }

  Lexer lexer_;
  std::string_view where_;
  Token token_;
  int depth_ = 0;
};

}  // namespace
}  // namespace detail

Result<Predicate> Predicate::parse(std::string_view text, std::string_view where) {
  if (text.size() > detail::kMaxText) {
    return fail(
        Fault::input, "predicate-syntax", std::string(where),
        "an expression has at most 65536 bytes, this one has " + std::to_string(text.size()));
  }
  auto root = detail::Parser(text, where).parse();
  if (!root) return tl::unexpected(std::move(root).error());
  return Predicate(*std::move(root));
}

}  // namespace metaldoctor
