// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/collective_checks.h"

#include <sched.h>

#include <algorithm>
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

void SharedResults::add(const std::string& what, const Bytes& result) {
  const std::lock_guard lock(mutex_);
  auto& [first, count] = of_[what];
  if (count++ == 0) first = result;
  require(first == result, what + ": all ranks have the same bits");
  if (count == ranks_) of_.erase(what);
}

CollectiveRequest allreduce_of(ElementType type, Reduction reduction) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllreduce;
  request.type = type;
  request.reduction = reduction;
  return request;
}

void CheckedOperation::verify(const Status& status) const {
  if (bring_back) bring_back();
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

// The allreduce's result, cut by rows: of every segment the part that is this rank's.
std::unique_ptr<CheckedOperation> make_reducescatter(const RankContext& context,
                                                     CollectiveRequest request,
                                                     const std::vector<std::size_t>& pieces,
                                                     std::size_t row, std::uint64_t seed) {
  std::vector<std::size_t> elements;
  for (const std::size_t rows : pieces) elements.push_back(rows * row);
  request.kind = CollectiveKind::kAllreduce;
  auto operation = make_allreduce(context, std::move(request), elements, false, seed);
  operation->what = "reducescatter by rows of " + std::to_string(row) + ", as " + operation->what;
  operation->request.kind = CollectiveKind::kReducescatter;
  const std::size_t element = element_size(operation->request.type);
  Bytes expected;
  std::size_t whole_begin = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const RowRange mine = rows_of(static_cast<std::int64_t>(pieces[i]), context.size, context.rank);
    const std::size_t begin = whole_begin + static_cast<std::size_t>(mine.begin) * row * element;
    const std::size_t bytes = static_cast<std::size_t>(mine.count) * row * element;
    operation->request.segments[i].output = operation->output.data() + expected.size();
    operation->request.row_counts.push_back(static_cast<std::int64_t>(row));
    const auto from = operation->expected.begin() + static_cast<std::ptrdiff_t>(begin);
    expected.insert(expected.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
    whole_begin += elements[i] * element;
  }
  operation->expected = std::move(expected);
  operation->output.resize(operation->expected.size());
  return operation;
}

std::unique_ptr<CheckedOperation> make_alltoall(const RankContext& context, ElementType type,
                                                const Splits& splits, std::size_t row,
                                                std::uint64_t seed) {
  auto operation = std::make_unique<CheckedOperation>();
  CollectiveRequest& request = operation->request;
  request.kind = CollectiveKind::kAlltoall;
  request.type = type;
  request.row_counts = {static_cast<std::int64_t>(row)};
  const auto self = static_cast<std::size_t>(context.rank);
  const auto row_bytes = static_cast<std::ptrdiff_t>(row * element_size(type));
  std::vector<std::int64_t> incoming;
  for (std::size_t from = 0; from < splits.size(); ++from) {
    const std::vector<std::int64_t>& counts = splits[from];
    const auto rows_before = [&](std::size_t to) {
      return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(to),
                             std::int64_t{0});
    };
    const std::int64_t total = rows_before(counts.size());
    request.counts_by_rank.push_back(total);
    const Bytes whole = random_elements(type, static_cast<std::size_t>(total) * row,
                                        seed_of(seed, static_cast<int>(from)));
    if (from == self) operation->input = whole;
    const auto begin = whole.begin() + row_bytes * rows_before(self);
    operation->expected.insert(operation->expected.end(), begin, begin + row_bytes * counts[self]);
    incoming.push_back(counts[self]);
  }
  request.splits = splits[self];
  request.segments.push_back({operation->input.data(), nullptr,
                              request.counts_by_rank[self] * static_cast<std::int64_t>(row)});
  operation->what = describe("alltoall", type, operation->expected.size() / element_size(type),
                             splits.size(), seed);
  CheckedOperation* const made = operation.get();
  request.make_room = [made, incoming](const std::vector<std::int64_t>& received) {
    require(received == incoming, made->what + ": it is told what comes from whom");
    require(made->output.empty(), made->what + ": it asks for room once");
    made->output.resize(made->expected.size());
    return made->output.data();
  };
  return operation;
}

std::unique_ptr<CheckedOperation> misaligned(std::unique_ptr<CheckedOperation> operation,
                                             std::size_t shift) {
  CheckedOperation* const made = operation.get();
  CollectiveRequest& request = made->request;
  made->what += ", " + std::to_string(shift) + " bytes behind";
  made->moved_input.resize(shift);
  made->moved_input.insert(made->moved_input.end(), made->input.begin(), made->input.end());
  made->moved_output.resize(shift + made->output.size());
  Bytes& target = made->is_in_place ? made->moved_input : made->moved_output;
  std::byte* const result = made->is_in_place ? made->input.data() : made->output.data();
  for (Segment& segment : request.segments) {
    segment.input = made->moved_input.data() + shift + (segment.input - made->input.data());
    if (segment.output) segment.output = target.data() + shift + (segment.output - result);
  }
  if (request.make_room) {
    request.make_room = [made, shift, ask = request.make_room](const auto& received) {
      ask(received);
      made->moved_output.resize(shift + made->output.size());
      return made->moved_output.data() + shift;
    };
  }
  made->bring_back = [made, shift] {
    const Bytes& from = made->is_in_place ? made->moved_input : made->moved_output;
    Bytes& to = made->is_in_place ? made->input : made->output;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(shift), to.size(), to.begin());
  };
  return operation;
}

Splits random_splits(int size, std::int64_t most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Splits splits(static_cast<std::size_t>(size),
                std::vector<std::int64_t>(static_cast<std::size_t>(size)));
  for (auto& row : splits)
    for (auto& count : row)
      count = random() % 3 == 0
                  ? 0
                  : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  return splits;
}

std::unique_ptr<CheckedOperation> make_random(const RankContext& context, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const ElementType type = all_types()[random() % all_types().size()];
  std::vector<std::size_t> pieces(1 + random() % 6);
  for (std::size_t& piece : pieces) piece = random() % 3 == 0 ? random() % 9 : random() % 6000;
  switch (random() % 6) {
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
    case 2:
      return make_alltoall(context, type, random_splits(context.size, 1500, seed), random() % 4,
                           seed);
    default: {
      const bool scatters = random() % 3 == 0;
      CollectiveRequest request =
          allreduce_of(type, all_reductions()[random() % all_reductions().size()]);
      if (type != ElementType::kBool && random() % 3 == 0) request.divisor = context.size;
      if (type != ElementType::kBool && random() % 4 == 0) request.prescale = 0.5;
      if (type != ElementType::kBool && random() % 4 == 0) request.postscale = 2;
      if (scatters) return make_reducescatter(context, request, pieces, 1 + random() % 4, seed);
      return make_allreduce(context, request, pieces, random() % 2 == 0, seed);
    }
  }
}

void run_and_verify(RankContext& context, std::unique_ptr<CheckedOperation> operation) {
  context.at(operation->what);
  operation->verify(context.run(operation->request));
}

void run_together(RankContext& context, std::vector<std::unique_ptr<CheckedOperation>> operations,
                  std::uint64_t seed) {
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(context.rank));
  std::vector<std::unique_ptr<Collective>> running;
  for (const auto& operation : operations)
    running.push_back(context.backend.start(operation->request));
  std::size_t left = running.size();
  while (left > 0) {
    const std::size_t pick = random() % running.size();
    if (!running[pick]) continue;
    context.at(std::to_string(left) + " left, at " + operations[pick]->what);
    const Progress progress = running[pick]->advance();
    if (progress == Progress::kPending || has_advanced(progress)) {
      context.fabric.progress();
      ::sched_yield();
      continue;
    }
    operations[pick]->verify(progress == Progress::kDone ? Status::success()
                                                         : running[pick]->status());
    running[pick].reset();
    --left;
  }
}

const std::vector<JobShape>& all_shapes() {
  static const std::vector<JobShape> shapes = {{1},    {2},    {3},       {5},
                                               {8},    {1, 1}, {2, 2},    {2, 2, 2},
                                               {3, 3}, {1, 2}, {3, 1, 2}, {1, 1, 1, 1, 1}};
  return shapes;
}

}  // namespace hv::runtime
