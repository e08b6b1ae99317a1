#include "shim/search.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>

namespace metaldoctor {
namespace {

using Values = std::map<QueryKey, Value>;

QueryKey family(std::int64_t value) {
  return {"supportsFamily:", {value}};
}

Predicate parse(const std::string& text) {
  auto predicate = Predicate::parse(text);
  EXPECT_TRUE(predicate) << text;
  return predicate ? *predicate : Predicate();
}

World world_of(const Values& values) {
  return [values](const Atom& atom) -> Value {
    if (atom.kind == AtomKind::env) return atom.name == "ON";
    if (atom.kind != AtomKind::answer) return {};
    const auto found = values.find(atom.key);
    return found == values.end() ? Value{} : found->second;
  };
}

SearchProblem::Choice raise(std::int64_t value) {
  return {{family(value), true}, false, true};
}

SearchProblem stock() {
  SearchProblem problem;
  problem.base = world_of(
      {{family(1005), true}, {family(1006), false}, {family(1007), false}, {family(5001), false}});
  problem.choices = {raise(1006), raise(1007), raise(5001)};
  problem.implications = {{family(1007), family(1006), true}, {family(1007), family(1005), true}};
  return problem;
}

TEST(Search, TakesWhatCoherenceAsksFor) {
  SearchProblem problem = stock();
  problem.goals = {parse("family(1007)")};
  const auto solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->chosen, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(solution->opened, std::vector<bool>{true});
  // 5001 hangs on nothing here, so it is searched apart: {} settles it.
  EXPECT_EQ(solution->examined, 4U + 1U);
  EXPECT_EQ(solution->incoherent, 1U);
  EXPECT_EQ(solution->minimal_sets, 1U);
}

TEST(Search, PrefersTheLowestOfEqualSets) {
  SearchProblem problem = stock();
  problem.goals = {parse("family(5001) or family(1006)")};
  const auto solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->chosen, std::vector<std::size_t>{0});
  EXPECT_EQ(solution->minimal_sets, 2U);
}

TEST(Search, PrefersOtherAnswersToRaisedFamilies) {
  SearchProblem problem = stock();
  problem.choices.push_back({{{"supportsZ", {}}, true}, false, false});
  problem.goals = {parse("family(1006) or answer('supportsZ')")};
  const auto solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->chosen, std::vector<std::size_t>{3});
}

TEST(Search, GuardsAndForcedChoices) {
  SearchProblem problem = stock();
  problem.goals = {parse("family(1007)"), parse("family(5001)")};
  problem.guards = {{parse("family(5001) and family(1006)"), false, true, false}};
  auto solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->opened, (std::vector<bool>{false, true})) << "one answer instead of two";

  problem.choices[0].forced = true;
  solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->opened, (std::vector<bool>{true, false}));

  problem.choices[2].forced = true;
  solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_FALSE(solution->feasible);
  EXPECT_EQ(solution->minimal_sets, 0U);
}

TEST(Search, UnknownPartsOfOneLine) {
  SearchProblem problem = stock();
  problem.base = world_of({{family(1005), Value{}}, {family(1006), false}, {family(1007), false}});
  problem.goals = {parse("family(1007)")};
  auto solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_FALSE(solution->opened[0]) << "1005 is unknown and cannot be chosen";
  problem.implications[1].part_must_be_known = false;
  solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_TRUE(solution->opened[0]);
}

TEST(Search, MinimalOpeningsAndBrokenImplications) {
  SearchProblem problem = stock();
  problem.goals = {parse("family(1007) or family(5001)")};
  const auto openings = minimal_openings(problem, 8);
  ASSERT_TRUE(openings);
  EXPECT_EQ(*openings, (std::vector<std::vector<std::size_t>>{{2}, {0, 1}}));
  const auto broken = broken_implications(problem, {1});
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_EQ(broken[0].part, family(1006));
}

TEST(Search, RefusesTooMuchThatHangsTogether) {
  SearchProblem problem;
  problem.base = world_of({});
  std::string all = "true";
  for (std::size_t i = 0; i <= kMaxConnectedChoices; ++i) {
    problem.choices.push_back(raise(1000 + static_cast<std::int64_t>(i)));
    all += " and family(" + std::to_string(1000 + i) + ")";
  }
  problem.goals = {parse(all)};
  const auto refused = search(problem);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "too-many-candidates");
  EXPECT_FALSE(minimal_openings(problem, 1));

  problem.goals.clear();  // apart they are no trouble
  for (std::size_t i = 0; i <= kMaxConnectedChoices; ++i) {
    problem.goals.push_back(parse("family(" + std::to_string(1000 + i) + ")"));
  }
  const auto solution = search(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->chosen.size(), kMaxConnectedChoices + 1);
  EXPECT_EQ(solution->examined, 2 * (kMaxConnectedChoices + 1));
}

/// Random problems over up to eight answers, two of them integers.
class RandomProblem {
 public:
  explicit RandomProblem(std::uint32_t seed) : random_(seed) {
    count_ = 1 + pick(8);
    for (std::size_t i = 0; i < count_; ++i) add_answer(i);
    problem.base = world_of(base);
    for (std::size_t n = pick(5); n > 0; --n) problem.goals.push_back(predicate());
    for (std::size_t n = pick(3); n > 0; --n) {
      problem.guards.push_back({predicate(), pick(3) == 0, pick(3) == 0, pick(3) == 0});
    }
    for (std::size_t n = pick(4); n > 0 && count_ > 2; --n) {
      problem.implications.push_back(
          {key(2 + pick(count_ - 2)), key(2 + pick(count_ - 2)), pick(2) == 0});
    }
  }

  SearchProblem problem;
  Values base;

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }

  QueryKey key(std::size_t i) const {
    return i < 2 ? QueryKey{i == 0 ? "size" : "tier", {}}
                 : family(1000 + static_cast<std::int64_t>(i));
  }
  void add_answer(std::size_t i) {
    const bool number = i < 2;
    const auto value = [&](std::size_t v) {
      return number ? Value{static_cast<std::int64_t>(v)} : Value{v != 0};
    };
    const std::size_t guest = pick(3);  // 2: unknown
    if (guest < 2) base[key(i)] = value(guest);
    // Otherwise the host says the same, says nothing, or a hazard forbids it.
    if (pick(5) == 0) return;
    SearchProblem::Choice choice;
    choice.answer = {key(i), value(guest == 0 ? 1 : guest == 1 ? 0 : pick(2))};
    choice.forced = pick(12) == 0;
    choice.raises_family = !number && choice.answer.value == Value{true};
    problem.choices.push_back(choice);
  }
  std::string term(int depth) {
    if (depth > 0 && pick(2) == 0) {
      const std::string word = pick(2) == 0 ? " and " : " or ";
      return "(" + term(depth - 1) + word + term(depth - 1) + ")";
    }
    if (pick(5) == 0) return "not " + term(depth - 1);
    switch (pick(8)) {
      case 0:
        return "env('ON')";
      case 1:
        return "env('OFF')";
      case 2:
        return "unknown('x')";
      case 3:
        return "answer('size') > 0";
      case 4:
        return "answer('tier') + 1 == 1";
      default:
        return "family(" + std::to_string(1000 + 2 + pick(6)) + ")";
    }
  }
  Predicate predicate() { return parse(term(3)); }

  std::mt19937 random_;
  std::size_t count_ = 0;
};

/// What search() promises, by plain enumeration of every subset of all choices at once.
struct BruteForce {
  bool feasible = false;
  std::size_t opened = 0;
  std::vector<std::size_t> chosen;
  std::size_t minimal_sets = 0;

  explicit BruteForce(const RandomProblem& random) {
    const SearchProblem& problem = random.problem;
    const auto subsets = std::uint32_t{1} << problem.choices.size();
    for (std::uint32_t subset = 0; subset < subsets; ++subset) consider(random, subset);
  }

 private:
  void consider(const RandomProblem& random, std::uint32_t subset) {
    const SearchProblem& problem = random.problem;
    Values values = random.base;
    std::vector<std::size_t> set;
    int families = 0;
    for (std::size_t i = 0; i < problem.choices.size(); ++i) {
      const auto& choice = problem.choices[i];
      if ((subset >> i & 1) == 0) {
        if (choice.forced) return;
        continue;
      }
      set.push_back(i);
      families += choice.raises_family ? 1 : 0;
      values[choice.answer.key] = choice.answer.value;
    }
    const World world = world_of(values);
    for (const auto& implication : problem.implications) {
      const bool touched =
          changed(problem, set, implication.whole) || changed(problem, set, implication.part);
      const Value whole = values[implication.whole];
      const Value part = values[implication.part];
      if (!touched || whole != Value{true}) continue;
      if (part == Value{false} || (!is_known(part) && implication.part_must_be_known)) return;
    }
    for (const auto& guard : problem.guards) {
      const Truth truth = guard.predicate.evaluate(world);
      if (truth == Truth::no && guard.no_forbidden) return;
      if (truth == Truth::yes && guard.yes_forbidden) return;
      if (truth == Truth::unknown && guard.unknown_forbidden) return;
    }
    std::size_t open = 0;
    for (const Predicate& goal : problem.goals) {
      if (goal.evaluate(world) == Truth::yes) ++open;
    }
    take(open, std::move(set), families);
  }

  void take(std::size_t open, std::vector<std::size_t> set, int families) {
    const auto mine = std::tuple(-static_cast<long>(open), set.size());
    const auto best = std::tuple(-static_cast<long>(opened), chosen.size());
    if (feasible && mine > best) return;
    if (feasible && mine == best) {
      ++minimal_sets;
      if (std::tuple(families, set) > std::tuple(families_, chosen)) return;
    } else {
      minimal_sets = 1;
    }
    feasible = true;
    opened = open;
    chosen = std::move(set);
    families_ = families;
  }

  static bool changed(const SearchProblem& problem, const std::vector<std::size_t>& set,
                      const QueryKey& key) {
    return std::any_of(set.begin(), set.end(),
                       [&](std::size_t i) { return problem.choices[i].answer.key == key; });
  }

  int families_ = 0;
};

TEST(SearchProperty, AgreesWithBruteForce) {
  int feasible = 0, changing = 0;
  for (std::uint32_t seed = 0; seed < 6'000; ++seed) {
    const RandomProblem random(seed);
    const auto solution = search(random.problem);
    ASSERT_TRUE(solution) << seed;
    const BruteForce truth(random);
    ASSERT_EQ(solution->feasible, truth.feasible) << seed;
    if (!truth.feasible) continue;
    ++feasible;
    changing += truth.chosen.empty() ? 0 : 1;
    const auto opened = std::count(solution->opened.begin(), solution->opened.end(), true);
    ASSERT_EQ(static_cast<std::size_t>(opened), truth.opened) << seed;
    ASSERT_EQ(solution->chosen, truth.chosen) << seed;
    ASSERT_EQ(solution->minimal_sets, truth.minimal_sets) << seed;
  }
  EXPECT_GT(feasible, 4'000);
  EXPECT_GT(changing, 1'000);
}

}  // namespace
}  // namespace metaldoctor
