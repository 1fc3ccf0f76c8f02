// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/collective_checks.h"

#include <numeric>
#include <stdexcept>

namespace hv::runtime {
namespace {

std::uint64_t seed_of(std::uint64_t seed, int rank) {
  return seed * 1000 + static_cast<std::uint64_t>(rank);
}

// Cuts memory into segments: one for each piece.
void add_segments(CheckedOperation* operation, const std::vector<std::size_t>& pieces) {
  const std::size_t element = element_size(operation->request.type);
  std::byte* output = operation->is_in_place ? operation->input.data() : operation->output.data();
  std::size_t at = 0;
  for (const std::size_t piece : pieces) {
    operation->request.segments.push_back(
        {operation->input.data() + at, output + at, static_cast<std::int64_t>(piece)});
    at += piece * element;
  }
}

std::size_t total(const std::vector<std::size_t>& pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), std::size_t{0});
}

std::string describe(const char* kind, ElementType type, std::size_t count, std::size_t pieces,
                     std::uint64_t seed) {
  return std::string(kind) + " of " + std::to_string(count) + " " + element_type_name(type) +
         " in " + std::to_string(pieces) + " pieces, seed " + std::to_string(seed);
}

}  // namespace

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

CollectiveRequest allreduce_of(ElementType type, Reduction reduction) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllreduce;
  request.type = type;
  request.reduction = reduction;
  return request;
}

void CheckedOperation::verify(const Status& status) const {
  require(status.ok(), what + ": " + status.message);
  const std::string difference = first_difference(request.type, expected, result(), ulps);
  require(difference.empty(), what + ": " + difference);
}

std::unique_ptr<CheckedOperation> make_allreduce(const RankContext& context,
                                                 CollectiveRequest request,
                                                 const std::vector<std::size_t>& pieces,
                                                 bool in_place, std::uint64_t seed) {
  auto operation = std::make_unique<CheckedOperation>();
  operation->what =
      describe(reduction_name(request.reduction), request.type, total(pieces), pieces.size(), seed);
  operation->request = std::move(request);
  operation->is_in_place = in_place;
  operation->ulps = 1;  // the reference computes in float64
  std::vector<Bytes> inputs;
  for (int r = 0; r < context.size; ++r)
    inputs.push_back(random_elements(operation->request.type, total(pieces), seed_of(seed, r)));
  operation->expected = reference_allreduce(operation->request, inputs);
  operation->input = inputs[static_cast<std::size_t>(context.rank)];
  operation->output.resize(operation->input.size());
  add_segments(operation.get(), pieces);
  return operation;
}

std::unique_ptr<CheckedOperation> make_broadcast(const RankContext& context, ElementType type,
                                                 int root, const std::vector<std::size_t>& pieces,
                                                 std::uint64_t seed) {
  auto operation = std::make_unique<CheckedOperation>();
  operation->what = describe("broadcast", type, total(pieces), pieces.size(), seed) + " from " +
                    std::to_string(root);
  operation->request.kind = CollectiveKind::kBroadcast;
  operation->request.type = type;
  operation->request.root = root;
  operation->is_in_place = seed % 2 == 0;
  operation->input = random_elements(type, total(pieces), seed_of(seed, context.rank));
  operation->output.resize(operation->input.size());
  operation->expected = random_elements(type, total(pieces), seed_of(seed, root));
  add_segments(operation.get(), pieces);
  return operation;
}

std::unique_ptr<CheckedOperation> make_allgather(const RankContext& context, ElementType type,
                                                 const std::vector<std::int64_t>& counts,
                                                 std::uint64_t seed) {
  auto operation = std::make_unique<CheckedOperation>();
  operation->request.kind = CollectiveKind::kAllgather;
  operation->request.type = type;
  operation->request.counts_by_rank = counts;
  for (int r = 0; r < context.size; ++r) {
    const Bytes part = random_elements(
        type, static_cast<std::size_t>(counts[static_cast<std::size_t>(r)]), seed_of(seed, r));
    operation->expected.insert(operation->expected.end(), part.begin(), part.end());
    if (r == context.rank) operation->input = part;
  }
  operation->what = describe("allgather", type, operation->expected.size() / element_size(type),
                             counts.size(), seed);
  operation->output.resize(operation->expected.size());
  const auto mine = counts[static_cast<std::size_t>(context.rank)];
  operation->request.segments.push_back({operation->input.data(), operation->output.data(), mine});
  return operation;
}

std::unique_ptr<CheckedOperation> make_random(const RankContext& context, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const ElementType type = all_types()[random() % all_types().size()];
  std::vector<std::size_t> pieces(1 + random() % 6);
  for (std::size_t& piece : pieces) piece = random() % 3 == 0 ? random() % 9 : random() % 6000;
  switch (random() % 4) {
    case 0:
      return make_broadcast(context, type,
                            static_cast<int>(random() % static_cast<std::uint64_t>(context.size)),
                            pieces, seed);
    case 1: {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(context.size));
      for (auto& count : counts)
        count = static_cast<std::int64_t>(random() % 4 == 0 ? 0 : random() % 5000);
      return make_allgather(context, type, counts, seed);
    }
    default: {
      CollectiveRequest request =
          allreduce_of(type, all_reductions()[random() % all_reductions().size()]);
      if (type != ElementType::kBool && random() % 3 == 0) request.divisor = context.size;
      if (type != ElementType::kBool && random() % 4 == 0) request.prescale = 0.5;
      if (type != ElementType::kBool && random() % 4 == 0) request.postscale = 2;
      return make_allreduce(context, request, pieces, random() % 2 == 0, seed);
    }
  }
}

void run_and_verify(RankContext& context, std::unique_ptr<CheckedOperation> operation) {
  context.at(operation->what);
  operation->verify(context.run(operation->request));
}

const std::vector<JobShape>& all_shapes() {
  static const std::vector<JobShape> shapes = {{1},    {2},    {3},       {5},
                                               {8},    {1, 1}, {2, 2},    {2, 2, 2},
                                               {3, 3}, {1, 2}, {3, 1, 2}, {1, 1, 1, 1, 1}};
  return shapes;
}

}  // namespace hv::runtime
