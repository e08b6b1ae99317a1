#pragma once
#include <memory>
#include <optional>

#include "scanners/code/branch_index.h"
#include "scanners/code/trace.h"

namespace metaldoctor {

/// What the steps of one image's audit share: the program, and a tracer that is made when the first
/// function needs it.
class Workbench {
 public:
  /// `decoder` is kept by the caller for further images of the same processor.
  Workbench(Program program, std::unique_ptr<Decoder>& decoder)
      : program_(std::move(program)), decoder_(decoder) {}
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  Expressions& expressions() { return expressions_; }
  std::size_t traced() const { return traced_; }
  const BranchIndex& branches() {
    if (!branches_) branches_.emplace(program_);
    return *branches_;
  }

  /// One function; of one that is too long, the part from `part` on.
  Result<FunctionTrace> trace(std::uint64_t function, const KnownLoads* known = nullptr,
                              std::uint64_t part = 0) {
    if (!decoder_) {
      auto made = Decoder::create(program_.arch().kind);
      if (!made) return tl::unexpected(made.error());
      decoder_ = std::make_unique<Decoder>(std::move(*made));
    }
    if (!tracer_) tracer_.emplace(program_, *decoder_, expressions_);
    const auto [begin, end] = program_.functions().around(program_.image(), function);
    ++traced_;
    return tracer_->trace(part ? part : begin, end, begin, known);
  }

 private:
  Program program_;
  std::unique_ptr<Decoder>& decoder_;
  Expressions expressions_;
  std::optional<Tracer> tracer_;
  std::optional<BranchIndex> branches_;
  std::size_t traced_ = 0;
};

}  // namespace metaldoctor
