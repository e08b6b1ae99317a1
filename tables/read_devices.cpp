// Readers of what devices are: families, feature sets, chips, features, limits.
#include "tables/table_source.h"

namespace metaldoctor {

Result<Family> read_family(const Json& row) {
  Family family;
  family.name = row.at("name").get<std::string>();
  family.short_name = row.at("short").get<std::string>();
  family.value = row.at("value").get<std::int64_t>();
  family.line = row.at("line").get<std::string>();
  family.implies = texts_of(row, "implies");
  family.min_macos = version_of(row, "min_macos");
  family.reported_from = optional_text(row, "reported_from");
  family.mac_only = row.value("mac_only", false);
  family.provenance = read_provenance(row);
  return family;
}

Result<FeatureSet> read_feature_set(const Json& row) {
  FeatureSet set;
  set.name = row.at("name").get<std::string>();
  set.value = row.at("value").get<std::int64_t>();
  set.family = optional_text(row, "family");
  set.mac = row.value("mac", false);
  set.provenance = read_provenance(row);
  return set;
}

Result<Chip> read_chip(const Json& row) {
  Chip chip;
  chip.name = row.at("name").get<std::string>();
  chip.family = optional_text(row, "family");
  chip.mac = row.value("mac", false);
  chip.gpu_name = text_of(row, "gpu_name");
  chip.cpu_brand = text_of(row, "cpu_brand");
  chip.architecture = text_of(row, "architecture");
  chip.hw_models = texts_of(row, "hw_models");
  chip.inferred_families = texts_of(row, "inferred_families");
  chip.provenance = read_provenance(row);
  return chip;
}

Result<Feature> read_feature(const Json& row) {
  Feature feature;
  feature.id = row.at("id").get<std::string>();
  feature.name = row.at("name").get<std::string>();
  feature.metal = optional_text(row, "metal");
  feature.apple = optional_text(row, "apple");
  feature.mac = optional_text(row, "mac");
  feature.query = text_of(row, "query");
  feature.min_macos = optional_version(row, "min_macos");
  feature.provenance = read_provenance(row);
  return feature;
}

Result<Limit> read_limit(const Json& row) {
  Limit limit;
  limit.id = row.at("id").get<std::string>();
  limit.name = row.at("name").get<std::string>();
  limit.unit = text_of(row, "unit");
  limit.query = text_of(row, "query");
  for (const auto& [family, value] : row.at("values").items()) {
    limit.values.emplace(family, value_of(value));
  }
  limit.provenance = read_provenance(row);
  return limit;
}

}  // namespace metaldoctor
