#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scanners/code/audit.h"

namespace metaldoctor::testing {

/// The queries that the fixtures and the corpus ask; the tables have more.
inline Vocabulary small_vocabulary() {
  std::vector<Selector> selectors = auxiliary_selectors();
  const auto add = [&](const char* name, unsigned arguments, AnswerType type) {
    selectors.push_back(
        {name, SelectorRole::query, name, arguments, type, is_ambiguous_selector(name)});
  };
  for (const char* name : {"supportsFamily:", "supportsFeatureSet:", "supportsTextureSampleCount:",
                           "supportsCounterSampling:", "supportsVertexAmplificationCount:"})
    add(name, 1, AnswerType::boolean);
  for (const char* name : {"hasUnifiedMemory", "supports32BitFloatFiltering",
                           "supportsBCTextureCompression", "supportsRaytracing"})
    add(name, 0, AnswerType::boolean);
  for (const char* name :
       {"maxThreadgroupMemoryLength", "maxBufferLength", "location", "recommendedMaxWorkingSetSize",
        "currentAllocatedSize", "registryID", "readWriteTextureSupport", "argumentBuffersSupport"})
    add(name, 0, AnswerType::integer);
  add("counterSets", 0, AnswerType::object);
  add("name", 0, AnswerType::text);
  add("architecture", 0, AnswerType::object);
  return {std::move(selectors), known_functions()};
}

inline std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The arm64, arm64e and x86_64 slices of a file (an archive: every member), audited.
inline std::vector<Findings> audit_file(const std::vector<std::uint8_t>& bytes,
                                        const std::string& name) {
  std::vector<Findings> out;
  const Vocabulary words = small_vocabulary();
  const auto file = MachOFile::read(bytes, name);
  EXPECT_TRUE(file) << (file ? "" : file.error().what);
  if (!file) return out;
  for (const Slice& slice : file->slices()) {
    if (slice.arch != "arm64" && slice.arch != "arm64e" && slice.arch != "x86_64") continue;
    auto findings = audit(slice, words, name);
    EXPECT_TRUE(findings) << (findings ? "" : findings.error().where + findings.error().what);
    if (findings) out.push_back(std::move(*findings));
  }
  return out;
}

}  // namespace metaldoctor::testing
