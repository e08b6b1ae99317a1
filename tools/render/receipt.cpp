#include "tools/render/receipt.h"

#include <fmt/format.h>

#include <cctype>

#include "shim/inject/wrapper.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kShownHash = 12;

class Writer {
 public:
  void line(std::string_view label, std::string_view text) {
    constexpr std::size_t indent = 10;
    if (!text.empty()) out_ += fmt::format("  {:<8}{}\n", label, wrap(text, indent, indent));
  }
  void raw(std::string text) { out_ += text; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string state_text(const ReceiptFile::State& state) {
  if (!state.exists) return "nothing";
  return fmt::format("{} {:04o}", state.sha256.substr(0, kShownHash), state.mode);
}

std::string_view verb(const ReceiptFile& file) {
  if (!file.before.exists) return "new";
  return file.before == file.after ? "as it is" : "change";
}

void commands(Writer& writer, std::string_view label, const std::vector<ReceiptCommand>& list) {
  for (const ReceiptCommand& each : list) {
    writer.line(label, command_line(each.argv) + (each.may_fail ? "   (may fail)" : ""));
  }
}

}  // namespace

std::string command_line(const std::vector<std::string>& argv) {
  std::string out;
  for (const std::string& word : argv) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-./:=,@%+") == std::string::npos;
    out += fmt::format("{}{}", out.empty() ? "" : " ", plain ? word : shell_quoted(word));
  }
  return out;
}

std::string receipt_text(const Receipt& receipt, const std::string& path, TextStyle style) {
  Writer writer;
  writer.raw(fmt::format("{} {}: {}\n", receipt.action, printable(receipt.subject),
                         style.paint(TextStyle::Ink::bold, to_string(receipt.state))));
  for (const std::string& directory : receipt.directories) writer.line("mkdir", directory);
  for (const ReceiptFile& file : receipt.files) {
    writer.line(verb(file), file.path);
    writer.line("", fmt::format("{} -> {}", state_text(file.before), state_text(file.after)));
  }
  if (receipt.state == Receipt::State::rolled_back) {
    commands(writer, "first", receipt.undo_before);
    commands(writer, "then", receipt.undo_after);
  } else {
    commands(writer, "first", receipt.before);
    commands(writer, "then", receipt.after);
    commands(writer, "undo", receipt.undo_before);
    commands(writer, "undo", receipt.undo_after);
  }
  writer.line("receipt", path);
  if (receipt.state == Receipt::State::applied) {
    writer.line("back", "metaldoctor rollback " + receipt.id);
  }
  return writer.take();
}

std::string receipt_list_text(const ReceiptListing& listing) {
  std::string out;
  for (const Receipt& receipt : listing.receipts) {
    out += fmt::format("{}  {:<12} {} {}\n", receipt.id, to_string(receipt.state), receipt.action,
                       printable(receipt.subject));
  }
  for (const DamagedReceipt& each : listing.damaged) {
    out += fmt::format("{}  {:<12} {}\n", printable(each.id), "damaged", each.problem.code);
  }
  return out;
}

Json preference_json(const std::string& value, const std::optional<Receipt>& receipt) {
  Json json = {{"schema", "metaldoctor.host-preference/1"}};
  json["domain"] = kPreferenceDomain;
  json["key"] = kPreferenceKey;
  json["value"] = value;
  json["facts"] = Json::array();
  for (const PreferenceFact& fact : preference_facts()) {
    json["facts"].push_back(
        {{"text", fact.text}, {"evidence", to_string(fact.evidence)}, {"source", fact.source}});
  }
  json["products"] = Json::array();
  for (const VmProduct& product : vm_products()) {
    json["products"].push_back(
        {{"name", product.name}, {"stop", product.stop}, {"start", product.start}});
  }
  json["receipt"] = receipt ? to_json(*receipt) : Json(nullptr);
  return json;
}

std::string preference_text(const std::string& value, TextStyle style) {
  Writer writer;
  writer.raw(fmt::format("{} {}: {}\n", kPreferenceDomain, kPreferenceKey,
                         style.paint(TextStyle::Ink::bold, value)));
  for (const PreferenceFact& fact : preference_facts()) {
    writer.line("fact", fmt::format("{} [{}]", fact.text, to_string(fact.evidence)));
    if (style.verbosity > 0) writer.line("", fmt::format("source: {}", fact.source));
  }
  for (const VmProduct& product : vm_products()) {
    writer.line(product.name, fmt::format("{}, then {}", product.stop, product.start));
  }
  return writer.take();
}

}  // namespace metaldoctor
