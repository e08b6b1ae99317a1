#include "shim/inject/receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scanners/macho/sha256.h"
#include "shim/inject/file_system.h"

namespace metaldoctor {
namespace {

constexpr std::array<std::string_view, 5> kStates{"planned", "prepared", "applied", "rolling-back",
                                                  "rolled-back"};

Json state_json(const ReceiptFile::State& state) {
  if (!state.exists) return nullptr;
  return {{"sha256", state.sha256}, {"mode", fmt::format("{:04o}", state.mode)}};
}

ReceiptFile::State state_of(const Json& json) {
  if (json.is_null()) return {};
  const auto mode = json.at("mode").get<std::string>();
  return {true, json.at("sha256").get<std::string>(),
          static_cast<unsigned>(std::strtoul(mode.c_str(), nullptr, 8)) & 07777};
}

Json commands_json(const std::vector<ReceiptCommand>& commands) {
  Json out = Json::array();
  for (const ReceiptCommand& each : commands) {
    out.push_back({{"argv", each.argv}, {"may_fail", each.may_fail}});
  }
  return out;
}

std::vector<ReceiptCommand> commands_of(const Json& json) {
  std::vector<ReceiptCommand> out;
  for (const Json& each : json) {
    out.push_back(
        {each.at("argv").get<std::vector<std::string>>(), each.at("may_fail").get<bool>()});
  }
  return out;
}

/// The hash of everything else.
std::string check_of(Json json) {
  json.erase("check");
  const std::string text = json.dump();
  return hex(sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

struct CommandList {
  const char* name;
  std::vector<ReceiptCommand> Receipt::* list;
};
constexpr std::array<CommandList, 4> kCommandLists{{
    {"before", &Receipt::before},
    {"after", &Receipt::after},
    {"undo_before", &Receipt::undo_before},
    {"undo_after", &Receipt::undo_after},
}};

Receipt parse(const Json& json) {
  Receipt out;
  const auto state = json.at("state").get<std::string>();
  out.state = static_cast<Receipt::State>(std::ranges::find(kStates, state) - kStates.begin());
  out.id = json.at("id").get<std::string>();
  out.made = json.at("made").get<std::string>();
  out.action = json.at("action").get<std::string>();
  out.subject = json.at("subject").get<std::string>();
  for (const Json& file : json.at("files")) {
    out.files.push_back({file.at("path").get<std::string>(), state_of(file.at("before")),
                         state_of(file.at("after")), file.at("backup").get<std::string>()});
  }
  out.directories = json.at("directories").get<std::vector<std::string>>();
  for (const CommandList& each : kCommandLists) {
    out.*each.list = commands_of(json.at("commands").at(each.name));
  }
  return out;
}

bool is_plain_name(const std::string& name) {
  return name.find('/') == std::string::npos && name != "." && name != "..";
}

}  // namespace

std::string_view to_string(Receipt::State state) {
  return kStates[static_cast<std::size_t>(state)];
}

Json to_json(const Receipt& receipt) {
  Json json = {{"schema", "metaldoctor.receipt/1"}};
  json["id"] = receipt.id;
  json["made"] = receipt.made;
  json["state"] = to_string(receipt.state);
  json["action"] = receipt.action;
  json["subject"] = receipt.subject;
  json["files"] = Json::array();
  for (const ReceiptFile& file : receipt.files) {
    json["files"].push_back({{"path", file.path},
                             {"before", state_json(file.before)},
                             {"after", state_json(file.after)},
                             {"backup", file.backup}});
  }
  json["directories"] = receipt.directories;
  for (const CommandList& each : kCommandLists) {
    json["commands"][each.name] = commands_json(receipt.*each.list);
  }
  json["check"] = check_of(json);
  return json;
}

Result<Receipt> read_receipt(std::string_view text, std::string_view name) {
  const auto json = read_document(text, "receipt", name);
  if (!json) return tl::unexpected(json.error());
  const auto refuse = [&](std::string what) {
    return fail(Fault::refused, "receipt-edited", std::string(name), std::move(what),
                "restore the files it names by hand; their old bytes lie beside it");
  };
  if (json->at("check").get<std::string>() != check_of(*json)) {
    return refuse("was edited, or damaged: its contents do not match its check");
  }
  Receipt receipt = parse(*json);
  if (receipt.id.empty() || !is_plain_name(receipt.id)) return refuse("has no valid id");
  for (const ReceiptFile& file : receipt.files) {
    const bool has_backup = !file.backup.empty();
    if (!is_plain_absolute(file.path) || !is_plain_name(file.backup) ||
        has_backup != file.before.exists) {
      return refuse("names a file that no receipt of ours would name");
    }
  }
  for (const std::string& directory : receipt.directories) {
    if (!is_plain_absolute(directory)) return refuse("names a directory that is not absolute");
  }
  return receipt;
}

}  // namespace metaldoctor
