// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/registry.h"

#include "runtime/collective/allgather.h"
#include "runtime/collective/allreduce/allreduce.h"
#include "src/base/check.h"

namespace hv::runtime {
namespace {

AlgorithmQuestion question_of(const CollectiveSetup& setup, std::string_view collective) {
  const CollectiveRequest& request = setup.request;
  AlgorithmQuestion question{collective, extent_of(setup.plane.topology())};
  for (const Segment& segment : request.segments) question.bytes += segment.count;
  question.bytes *= static_cast<std::int64_t>(element_size(request.type));
  question.deterministic = request.deterministic;
  question.narrow_floats =
      request.compression != Compression::kNone || is_narrow_float(request.type);
  return question;
}

// No rank leaves before all have come: an allreduce of one byte.
class Barrier : public Collective {
 public:
  explicit Barrier(CollectiveSetup setup) {
    setup.request = {};
    setup.request.kind = CollectiveKind::kAllreduce;
    setup.request.type = ElementType::kUint8;
    setup.request.reduction = Reduction::kMax;
    setup.request.segments = {{&byte_, &byte_, 1}};
    carried_by_ = start_collective(std::move(setup));
  }
  Progress advance() override { return carried_by_->advance(); }
  Status status() const override { return carried_by_->status(); }

 private:
  std::byte byte_{1};
  std::unique_ptr<Collective> carried_by_;
};

std::unique_ptr<Collective> barrier(CollectiveSetup setup) {
  return std::make_unique<Barrier>(std::move(setup));
}

}  // namespace

const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> list = {
      {CollectiveKind::kAllreduce, "allreduce", "alone", allreduce_alone},
      {CollectiveKind::kAllreduce, "allreduce", "direct", allreduce_direct},
      {CollectiveKind::kAllreduce, "allreduce", "shares", allreduce_shares},
      {CollectiveKind::kAllreduce, "allreduce", "inplace", allreduce_in_place},
      {CollectiveKind::kAllreduce, "allreduce", "hierarchical", allreduce_hierarchical},
      {CollectiveKind::kAllreduce, "allreduce", "torus", allreduce_torus},
      {CollectiveKind::kAllreduce, "compressed", "shares", allreduce_shares},
      {CollectiveKind::kAllreduce, "compressed", "torus", allreduce_torus},
      {CollectiveKind::kAllreduce, "adasum", "pairs", allreduce_adasum},
      {CollectiveKind::kSparseAllreduce, "sparseallreduce", "gather", allreduce_sparse},
      {CollectiveKind::kAllgather, "allgather", "pieces", allgather_pieces},
      {CollectiveKind::kBroadcast, "broadcast", "tree", broadcast_tree},
      {CollectiveKind::kBroadcast, "broadcast", "chain", broadcast_chain},
      {CollectiveKind::kReducescatter, "reducescatter", "pieces", reducescatter_pieces},
      {CollectiveKind::kAlltoall, "alltoall", "streams", alltoall_streams},
      {CollectiveKind::kBarrier, "barrier", "byte", barrier},
  };
  return list;
}

const std::vector<CrossAlgorithm>& cross_algorithms() {
  static const std::vector<CrossAlgorithm> list = {
      {"exchange", cross_exchange}, {"scatter", cross_scatter},   {"ring", cross_ring},
      {"halving", cross_halving},   {"doubling", cross_doubling}, {"tree", cross_tree},
  };
  return list;
}

// What is reduced in another way than by adding up has algorithms of its own.
std::string_view contract_name(const CollectiveRequest& request) {
  if (request.kind == CollectiveKind::kAllreduce) {
    if (request.reduction == Reduction::kAdasum) return "adasum";
    if (request.compression != Compression::kNone) return "compressed";
  }
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.kind == request.kind) return algorithm.collective;
  return {};
}

JobExtent extent_of(const Topology& topology) {
  return {topology.size, static_cast<int>(topology.leaders.size())};
}

std::unique_ptr<Collective> start_collective(CollectiveSetup setup) {
  const std::string_view collective = contract_name(setup.request);
  HV_CHECK(!collective.empty(), "a backend is given collectives only");
  const AlgorithmRow& row = choose_algorithm(*setup.wishes, question_of(setup, collective));
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.collective == collective && algorithm.name == row.name)
      return algorithm.make(std::move(setup));
  HV_CHECK(false, "every algorithm of the table is in the registry");
}

std::unique_ptr<CrossStage> start_cross_stage(const CrossTerms& terms, const CollectiveSetup& setup,
                                              std::size_t share_bytes) {
  AlgorithmQuestion question = question_of(setup, "cross");
  question.bytes = static_cast<std::int64_t>(share_bytes);
  const AlgorithmRow& row = choose_algorithm(*setup.wishes, question);
  for (const CrossAlgorithm& algorithm : cross_algorithms())
    if (algorithm.name == row.name) return algorithm.make(terms);
  HV_CHECK(false, "every way between hosts of the table is in the registry");
}

}  // namespace hv::runtime
