#pragma once
// A run of a "sim-result" document, as the checks of behaviour look at it.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tables/answer.h"
#include "tables/document.h"
#include "tables/tables.h"

namespace metaldoctor {

/// device and question -> the answers it was given, as numbers or texts; several if it changed.
using AnswerTable = std::map<std::pair<std::size_t, QueryKey>, std::set<std::string>>;

struct ReplacedMethod {
  std::string class_name, selector, types;
  std::string implementation;  ///< image + offset
};

struct BehaviourTrace {
  std::string id;
  std::string stop;  ///< "null-access: ... at libx.dylib+0x10"; empty = every step returned
  AnswerTable answers;
  std::vector<ReplacedMethod> methods;
  std::vector<std::string> imports;  ///< called at least once
  std::vector<std::string>
      imports_guessed;  ///< called, and the simulator does not know what they do
  std::vector<std::string> log;
  std::vector<std::string> written_objects;
  std::map<std::string, std::string> files, environment;
  std::vector<std::string> metal_features;
  std::uint64_t instructions = 0;
};

/// Refused is a document that is no result of the simulator.
Result<std::vector<BehaviourTrace>> read_traces(const Tables& tables, const Json& result);

/// One answer that differs, as text: "supportsFamily:1006 no -> yes".
struct AnswerDifference {
  QueryKey key;
  std::string text;
};
/// What `to` answers otherwise than `from` on one device.
std::vector<AnswerDifference> differences(const Tables& tables, const AnswerTable& from,
                                          const AnswerTable& to, std::size_t device);
/// `answers` with those of `changes` instead, on one device.
AnswerTable with_changes(AnswerTable answers, const std::vector<Answer>& changes,
                         std::size_t device);
/// How many questions a device was asked.
std::size_t asked_of(const AnswerTable& answers, std::size_t device);

/// "a, b and 3 more"
std::string first_few(const std::vector<std::string>& texts, std::size_t most = 3);

}  // namespace metaldoctor
