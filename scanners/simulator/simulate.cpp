#include <fmt/format.h>

#include <set>

#include "scanners/simulator/process.h"

namespace metaldoctor {
namespace {

constexpr std::size_t max_runs = 4096;
constexpr std::uint64_t max_memory = std::uint64_t{4} << 30;

Result<void> check(const SimRequest& request) {
  const auto refuse = [](std::string what) {
    return fail(Fault::usage, "simulator-request", "request", std::move(what));
  };
  if (request.runs.empty()) return refuse("there is no run");
  if (request.runs.size() > max_runs) return refuse(fmt::format("more than {} runs", max_runs));
  if (request.steps.empty()) return refuse("there is nothing to do: no steps");
  if (request.budget.memory > max_memory || request.budget.memory < Memory::page)
    return refuse(fmt::format("the memory budget is not between a page and {} bytes", max_memory));
  std::set<std::string> ids;
  for (const SimRun& run : request.runs)
    if (!ids.insert(run.id).second) return refuse(fmt::format("two runs are called {}", run.id));
  return {};
}

}  // namespace

Result<SimResult> simulate(const Tables& tables, const SimRequest& request, const SimHost& host) {
  if (auto checked = check(request); !checked) return tl::unexpected(checked.error());
  auto runtime = RuntimeTables::embedded();
  if (!runtime) return tl::unexpected(runtime.error());
  auto images = ImageSet::read(request.images, request.arch, request.budget);
  if (!images) return tl::unexpected(images.error());
  auto machine = Machine::open(images->arch() == "arm64" ? SimArch::arm64 : SimArch::x86_64);
  if (!machine) return tl::unexpected(machine.error());
  SimResult result;
  std::set<std::string> assumptions;
  for (const SimRun& run : request.runs) {
    Process process(tables, *runtime, request, run, *images, **machine);
    if (auto loaded = process.load(host); !loaded) return tl::unexpected(loaded.error());
    process.run_steps();
    result.runs.push_back(process.finish());
    // The engine must not keep pointers into a process that is gone; closing it drops the last.
    if (&run != &request.runs.back()) (*machine)->finish();
    const auto& made = result.runs.back().assumptions;
    assumptions.insert(made.begin(), made.end());
  }
  result.assumptions = {assumptions.begin(), assumptions.end()};
  for (std::size_t i = 1; i < result.runs.size(); ++i)
    result.differences.push_back(compare_traces(result.runs[0], result.runs[i]));
  return result;
}

Result<std::vector<std::string>> missing_libraries(const SimRequest& request) {
  auto images = ImageSet::read(request.images, request.arch, request.budget);
  if (!images) return tl::unexpected(images.error());
  return images->missing();
}

}  // namespace metaldoctor
