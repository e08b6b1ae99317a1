#pragma once
#include <optional>
#include <string>

#include "shim/inject/change_set.h"
#include "shim/inject/host_preference.h"
#include "shim/inject/receipt.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// What was written, or would be. `path` is where the receipt lies; empty = it was only planned.
std::string receipt_text(const Receipt& receipt, const std::string& path, TextStyle style);
/// One line a receipt; damaged ones come last.
std::string receipt_list_text(const ReceiptListing& listing);
/// A command as a shell would take it.
std::string command_line(const std::vector<std::string>& argv);

/// What is known of the host preference. `value`: "on", "off", "not set", "unknown".
/// Document kind "host-preference".
Json preference_json(const std::string& value, const std::optional<Receipt>& receipt);
std::string preference_text(const std::string& value, TextStyle style);

}  // namespace metaldoctor
