#include "shim/left_alone.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace metaldoctor {

namespace {

class LeftAloneList {
 public:
  LeftAloneList(const ProblemBuilder& builder, const std::vector<Path>& paths,
                const std::vector<ProfileChange>& changes)
      : builder_(builder), situation_(builder.situation()), paths_(paths) {
    for (const ProfileChange& change : changes) changed_.insert(change.answer.key);
    collect_questions();
  }

  std::vector<LeftAlone> list() {
    add_families();
    for (const QueryKey& key : asked_) {
      if (key.query != "supportsFamily:" && !changed_.contains(key)) add_question(key);
    }
    return std::move(list_);
  }

 private:
  void collect_questions() {
    std::set<std::string> releases;
    for (const Path& path : paths_) {
      for (const Atom& atom : path.predicate.atoms()) {
        if (atom.kind == AtomKind::answer) asked_.insert(atom.key);
      }
      if (path.id.find('@') != std::string::npos) {
        releases.insert(path.id.substr(0, path.id.find('/')));
      }
    }
    for (const std::string& release : releases) {
      const auto found = find_app(situation_.tables(), release);  // a gate's image is in no table
      if (!found) continue;
      for (const QueryKey& key : found->second->asks) asked_.insert(key);
    }
  }

  void add(const QueryKey& key, std::string why, std::string detail, Evidence evidence) {
    list_.push_back({key, std::move(why), std::move(detail), evidence});
  }

  void add_families() {
    std::map<std::string, std::int64_t> highest;
    const auto key_of = [](const Family& f) { return QueryKey{"supportsFamily:", {f.value}}; };
    for (const Family& family : situation_.tables().families()) {
      if (situation_.guest_answer(key_of(family)) != Value{true}) continue;
      std::int64_t& value = highest[family.line];
      value = std::max(value, family.value);
    }
    for (const Family& family : situation_.tables().families()) {
      const QueryKey key = key_of(family);
      if (family.value <= highest[family.line] || changed_.contains(key)) continue;
      add_differing(key);
    }
  }

  /// An answer that the guest does not give as high as it might.
  void add_differing(const QueryKey& key) {
    const bool asked = asked_.contains(key);
    if (builder_.is_pinned(key)) {
      add(key, "set", "the user set it to what the guest answers", Evidence::read);
      return;
    }
    const auto host = situation_.host_answer(key);
    if (!host) {
      add(key, asked ? "not-needed" : "not-asked",
          situation_.host()
              ? fmt::format("the tables do not say what {} answers", situation_.host()->name)
              : situation_.obstacle()->what,
          Evidence::unknown);
      return;
    }
    const std::string says =
        fmt::format("the host answers {}: {}", to_string(host->answer.value), host->why);
    if (situation_.family(key) && host->answer.value == Value{false}) {
      add(key, "above-host", says, host->evidence);
      return;
    }
    if (add_hazard({key, host->answer.value})) return;
    add(key, asked ? "not-needed" : "not-asked",
        says + (asked ? "; no wanted path needs it" : "; no path hangs on it"), host->evidence);
  }

  bool add_hazard(const Answer& change) {
    const auto hazards = builder_.hazards(change, paths_);
    if (!hazards.empty()) {
      const Hazard& hazard = *hazards.front().hazard;
      add(change.key, "hazard:" + hazard.id, hazard.effect, hazard.provenance.evidence);
      return true;
    }
    const World guest = situation_.guest();
    const World changed = [&](const Atom& atom) {
      const bool same = atom.kind == AtomKind::answer && atom.key == change.key;
      return same ? change.value : guest(atom);
    };
    const auto harm = builder_.opened_harm(changed, paths_);
    if (harm.empty()) return false;
    add(change.key, "hazard:" + harm.front()->id, harm.front()->opens, harm.front()->evidence);
    return true;
  }

  void add_question(const QueryKey& key) {
    const Query* query = situation_.tables().query(key.query);
    if (!query || !query->overridable) {
      add(key, "not-needed", "no capability answer: a profile never changes it", Evidence::read);
      return;
    }
    if (!query->argument.empty() && key.arguments.empty()) {
      add(key, "not-needed", "asked with a computed argument; no path hangs on it", Evidence::read);
      return;
    }
    const Value guest = situation_.guest_answer(key);
    if (const auto limit = situation_.common_limit(key); limit && guest == limit->answer.value) {
      add(key, "same-as-host",
          fmt::format("{} is {}, whatever the guest says; more would be above the tables{}",
                      to_string(guest), limit->why,
                      situation_.taken_from_limit(key) ? " (not read in this guest)" : ""),
          limit->evidence);
      return;
    }
    const auto host = situation_.host_answer(key);
    if (host && host->answer.value == guest) {
      add(key, "same-as-host", fmt::format("{}: {}", to_string(guest), host->why), host->evidence);
      return;
    }
    add_differing(key);
  }

  const ProblemBuilder& builder_;
  const Situation& situation_;
  const std::vector<Path>& paths_;
  std::set<QueryKey> changed_, asked_;
  std::vector<LeftAlone> list_;
};

}  // namespace

std::vector<LeftAlone> left_alone(const ProblemBuilder& builder, const std::vector<Path>& paths,
                                  const std::vector<ProfileChange>& changes) {
  return LeftAloneList(builder, paths, changes).list();
}

}  // namespace metaldoctor
