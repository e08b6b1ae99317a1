#include "tables/tables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tables/embedded_file.h"
#include "tables/tables_impl.h"

namespace metaldoctor {
namespace {

constexpr std::string_view kCaptures = "captures/";
constexpr std::string_view kJson = ".json";

template <typename Row, typename Matches>
const Row* find_row(const std::vector<Row>& rows, Matches matches) {
  const auto found = std::find_if(rows.begin(), rows.end(), matches);
  return found == rows.end() ? nullptr : &*found;
}

bool contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// In small letters and without blanks: people type "m1ultra".
std::string squeezed(std::string_view text) {
  std::string out;
  for (const unsigned char c : text) {
    if (c != ' ') out += static_cast<char>(std::tolower(c));
  }
  return out;
}

/// Without what a guest's CPU brand adds to the host chip's name: "Apple M1 Ultra (Virtual)".
std::string plain_chip_name(std::string_view name) {
  constexpr std::string_view kVirtual = "(virtual)";
  constexpr std::string_view kApple = "apple";
  std::string plain = squeezed(name);
  if (plain.ends_with(kVirtual)) plain.resize(plain.size() - kVirtual.size());
  if (plain.starts_with(kApple)) plain.erase(0, kApple.size());
  return plain;
}

/// The embedded tables are whole by themselves: what does not fit any more is the overrides' doing,
/// whichever file it shows in.
tl::unexpected<Diagnostic> override_fault(const TableSource& source, std::string what) {
  std::vector<std::string> files;
  for (const std::string& name : source.names()) {
    if (source.is_override(name)) files.push_back(source.shown(name));
  }
  return fail(Fault::input, "table-reference", fmt::format("{}", fmt::join(files, ", ")),
              "with this file the tables no longer fit together: " + std::move(what));
}

bool is_capture(const EmbeddedFile& file) {
  return file.name.starts_with(kCaptures) && file.name.ends_with(kJson);
}

std::string_view capture_name(const EmbeddedFile& file) {
  const std::size_t length = file.name.size() - kCaptures.size() - kJson.size();
  return file.name.substr(kCaptures.size(), length);
}

}  // namespace

Tables::Tables(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tables::~Tables() = default;
Tables::Tables(Tables&&) noexcept = default;
Tables& Tables::operator=(Tables&&) noexcept = default;

Result<Tables> Tables::embedded() {
  return Tables(std::make_unique<Impl>(TableSource()));
}

Result<Tables> Tables::with_overrides(std::map<std::string, std::string> files,
                                      std::string_view directory) {
  const std::vector<std::string> known = TableSource().names();
  std::map<std::string, std::string, std::less<>> overrides;
  for (auto& [name, text] : files) {
    const bool is_app = name.starts_with("apps/") && name.ends_with(kJson);
    if (!is_app && !contains(known, name)) {
      return fail(Fault::input, "table-unknown-file", std::string(directory) + '/' + name,
                  "there is no table of that name", "`metaldoctor tables` lists the tables");
    }
    overrides.emplace(name, std::move(text));
  }
  if (overrides.empty()) return embedded();
  Tables tables(std::make_unique<Impl>(TableSource(std::move(overrides), std::string(directory))));
  const TableSource& source = tables.impl_->reader.source();
  std::vector<FileReport> reports;
  try {
    reports = tables.validate();
  } catch (const std::logic_error& e) {  // a row that another file's reader counts on
    return override_fault(source, e.what());
  }
  const Diagnostic* first = nullptr;
  for (const FileReport& report : reports) {
    if (report.problems.empty()) continue;
    if (source.is_override(report.name)) return tl::unexpected(report.problems.front());
    if (first == nullptr) first = &report.problems.front();
  }
  if (first != nullptr) return override_fault(source, first->where + ": " + first->what);
  return tables;
}

std::string_view Tables::edition() const {
  families();
  return impl_->reader.edition();
}

OsVersion Tables::newest_macos() const {
  families();
  return impl_->reader.newest_macos();
}

const std::vector<Family>& Tables::families() const {
  return impl_->part(impl_->families, "families.json", "rows", read_family);
}
const std::vector<FeatureSet>& Tables::feature_sets() const {
  return impl_->part(impl_->feature_sets, "feature-sets.json", "rows", read_feature_set);
}
const std::vector<Chip>& Tables::chips() const {
  return impl_->part(impl_->chips, "chips.json", "rows", read_chip);
}
const std::vector<Feature>& Tables::features() const {
  return impl_->part(impl_->features, "features.json", "rows", read_feature);
}
const std::vector<Limit>& Tables::limits() const {
  return impl_->part(impl_->limits, "limits.json", "rows", read_limit);
}
const std::vector<Query>& Tables::queries() const {
  return impl_->part(impl_->queries, "queries.json", "rows", read_query);
}
const std::vector<Hazard>& Tables::hazards() const {
  return impl_->part(impl_->hazards, "hazards.json", "rows", read_hazard);
}
const std::vector<Verdict>& Tables::verdicts() const {
  return impl_->part(impl_->verdicts, "verdicts.json", "rows", read_verdict);
}
const std::vector<ParavirtualAnswer>& Tables::paravirtual() const {
  return impl_->part(impl_->paravirtual, "paravirtual.json", "rows", read_paravirtual);
}
const std::vector<Observation>& Tables::observations() const {
  return impl_->part(impl_->observations, "paravirtual.json", "observations", read_observation);
}
const std::vector<LogGrammar>& Tables::log_grammars() const {
  return impl_->part(impl_->log_grammars, "log-grammars.json", "rows", read_log_grammar);
}
const std::vector<PreflightRow>& Tables::preflight_rows() const {
  return impl_->part(impl_->preflight_rows, "preflight.json", "rows", read_preflight_row);
}
const std::vector<SystemPlace>& Tables::system_places() const {
  return impl_->part(impl_->system_places, "preflight.json", "places", read_system_place);
}
const std::vector<Launcher>& Tables::launchers() const {
  return impl_->part(impl_->launchers, "preflight.json", "launchers", read_launcher);
}
const std::vector<App>& Tables::apps() const {
  if (!impl_->apps) impl_->apps = Impl::must(impl_->reader.apps());
  return *impl_->apps;
}

const Family* Tables::family(std::int64_t value) const {
  return find_row(families(), [&](const Family& row) { return row.value == value; });
}
const Family* Tables::family(std::string_view short_name) const {
  return find_row(families(), [&](const Family& row) { return row.short_name == short_name; });
}
const FeatureSet* Tables::feature_set(std::int64_t value) const {
  return find_row(feature_sets(), [&](const FeatureSet& row) { return row.value == value; });
}

const Chip* Tables::chip(std::string_view any_name) const {
  const std::string plain = plain_chip_name(any_name);
  if (plain.empty()) return nullptr;
  return find_row(chips(), [&](const Chip& row) {
    return squeezed(row.name) == plain || plain_chip_name(row.gpu_name) == plain ||
           plain_chip_name(row.cpu_brand) == plain;
  });
}

const Query* Tables::query(std::string_view selector_or_alias) const {
  return find_row(queries(), [&](const Query& row) {
    return row.selector == selector_or_alias || contains(row.aliases, selector_or_alias);
  });
}
const Feature* Tables::feature(std::string_view id) const {
  return find_row(features(), [&](const Feature& row) { return row.id == id; });
}
const Limit* Tables::limit(std::string_view id) const {
  return find_row(limits(), [&](const Limit& row) { return row.id == id; });
}
const Hazard* Tables::hazard(std::string_view id) const {
  return find_row(hazards(), [&](const Hazard& row) { return row.id == id; });
}
const Verdict* Tables::verdict(std::string_view id) const {
  return find_row(verdicts(), [&](const Verdict& row) { return row.id == id; });
}

const App* Tables::app(std::string_view id_or_alias) const {
  const auto is_asked = [&](const App& row) {
    return row.id == id_or_alias || contains(row.aliases, id_or_alias);
  };
  if (impl_->apps) return find_row(*impl_->apps, is_asked);
  // Most of a program's start-up would go into the other apps: only files that spell the name in
  // quotes can hold it.
  const std::string quoted = '"' + std::string(id_or_alias) + '"';
  for (const std::string& name : impl_->reader.source().names()) {
    if (!name.starts_with("apps/")) continue;
    if (impl_->reader.source().text(name)->find(quoted) == std::string_view::npos) continue;
    auto found = impl_->single_apps.find(name);
    if (found == impl_->single_apps.end()) {
      found = impl_->single_apps.emplace(name, Impl::must(impl_->reader.app(name))).first;
    }
    if (is_asked(found->second)) return &found->second;
  }
  return nullptr;
}

std::string_view Tables::source(std::string_view key) const {
  if (const std::string* citation = impl_->reader.citation(key)) return *citation;
  // A row names only sources of its own file, which was read for the row: a key from elsewhere is
  // worth reading the rest.
  const bool is_citation = key.find_first_of(" /:") != std::string_view::npos;
  if (is_citation) return key;
  for (const std::string& name : impl_->reader.source().names()) {
    (void)impl_->reader.document(name);
    if (const std::string* citation = impl_->reader.citation(key)) return *citation;
  }
  const Observation* observation =
      find_row(observations(), [&](const Observation& row) { return row.id == key; });
  return observation != nullptr ? std::string_view(observation->text) : key;
}

Result<QueryKey> Tables::canonical(const QueryKey& key) const {
  const Query* row = query(key.query);
  if (row == nullptr) {
    return fail(Fault::usage, "query-unknown", to_string(key),
                "no such question to a Metal device is known",
                "`metaldoctor tables queries` lists them");
  }
  const std::size_t wanted = row->argument.empty() ? 0 : 1;
  if (key.arguments.size() != wanted) {
    return fail(Fault::usage, "query-argument", to_string(key),
                wanted == 0 ? row->selector + " takes no argument"
                            : row->selector + " needs one integer: " + row->argument);
  }
  return QueryKey{row->selector, key.arguments};
}

std::optional<std::string_view> Tables::capture_text(std::string_view name) const {
  for (const EmbeddedFile& file : embedded_tables()) {
    if (is_capture(file) && capture_name(file) == name) return file.bytes;
  }
  return std::nullopt;
}

std::vector<std::string_view> Tables::capture_names() const {
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : embedded_tables()) {
    if (is_capture(file)) names.push_back(capture_name(file));
  }
  return names;
}

std::vector<Tables::FileReport> Tables::validate() const {
  return validate_tables(impl_->reader.source(), *this);
}

}  // namespace metaldoctor
