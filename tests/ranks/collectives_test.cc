// Every collective on every job shape against the plain reference; several at once; seeded random
// ones.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/ranks/collective_checks.h"
#include "tests/ranks/drawn.h"
#include "tests/ranks/seeded_yields.h"

namespace hv::runtime {
namespace {

RunOptions many_blocks() {
  RunOptions options;
  options.config.slot_bytes = 4096;
  return options;
}

}  // namespace

TEST_CASE("allreduce equals the reference for every shape, type, reduction and odd count") {
  const std::vector<std::size_t> counts = {0, 1, 3, 17, 4097, 20011};
  const auto all = drawn_product(all_shapes(), all_types(), all_reductions(), counts);
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [&](RankContext& context) {
      std::uint64_t seed = 1;
      for (const auto& [in_shape, type, reduction, count] : all) {
        if (in_shape != shape) continue;
        ++seed;
        run_and_verify(context, make_allreduce(context, allreduce_of(type, reduction), {count},
                                               seed % 2 == 0, seed));
      }
    });
  }
}

TEST_CASE("a fused allreduce of uneven segments equals the reference") {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [](RankContext& context) {
      const std::vector<std::size_t> pieces = {1, 5000, 0, 3, 1024, 1023, 1, 1, 9000, 0};
      for (const ElementType type : all_types())
        for (const bool in_place : {false, true})
          run_and_verify(context, make_allreduce(context, allreduce_of(type, Reduction::kSum),
                                                 pieces, in_place, 7));
    });
  }
}

TEST_CASE("prescale, postscale and average are applied alike on every shape") {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [](RankContext& context) {
      for (const ElementType type : all_types()) {
        if (type == ElementType::kBool) continue;
        CollectiveRequest request = allreduce_of(type, Reduction::kSum);
        request.divisor = context.size;
        run_and_verify(context, make_allreduce(context, request, {3001, 77}, false, 3));
        request.prescale = 0.5;
        request.postscale = 4;
        run_and_verify(context, make_allreduce(context, request, {3001, 77}, true, 4));
      }
    });
  }
}

TEST_CASE("broadcast hands the root's bytes to everybody, whoever the root is") {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [](RankContext& context) {
      for (int root = 0; root < context.size; ++root)
        for (const std::size_t count : {0, 1, 4099, 30011})
          run_and_verify(context,
                         make_broadcast(context, ElementType::kInt16, root, {count, 3}, count + 1));
    });
  }
}

TEST_CASE("allgather joins contributions of different sizes, empty ones too") {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [](RankContext& context) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(context.size), 0);
      run_and_verify(context, make_allgather(context, ElementType::kInt64, counts, 1));
      for (std::size_t r = 0; r < counts.size(); ++r)
        counts[r] = static_cast<std::int64_t>(r * r * 700 % 5000);
      run_and_verify(context, make_allgather(context, ElementType::kInt64, counts, 2));
      counts.back() = 20011;
      run_and_verify(context, make_allgather(context, ElementType::kUint8, counts, 3));
    });
  }
}

TEST_CASE(
    "reducescatter gives every rank its rows of the allreduce, for every shape, type and "
    "reduction") {
  const std::vector<std::size_t> row_counts = {0, 1, 7, 4099};
  const auto all = drawn_product(all_shapes(), all_types(), all_reductions(), row_counts);
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [&](RankContext& context) {
      std::uint64_t seed = 1;
      for (const auto& [in_shape, type, reduction, rows] : all) {
        if (in_shape != shape) continue;
        ++seed;
        run_and_verify(context, make_reducescatter(context, allreduce_of(type, reduction), {rows},
                                                   1 + seed % 5, seed));
      }
    });
  }
}

TEST_CASE("a fused, scaled reducescatter of uneven segments equals the reference") {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [](RankContext& context) {
      for (const ElementType type : all_types()) {
        CollectiveRequest request = allreduce_of(type, Reduction::kSum);
        const std::vector<std::size_t> pieces = {1, 500, 0, 3, 1024, 1023, 1, 1, 2000, 0};
        run_and_verify(context, make_reducescatter(context, request, pieces, 3, 7));
        if (type == ElementType::kBool) continue;
        request.divisor = context.size;
        request.prescale = 0.5;
        request.postscale = 4;
        run_and_verify(context, make_reducescatter(context, request, pieces, 3, 8));
      }
    });
  }
}

// The engine's ranks agree on how much each has; what a head says beyond that is refused.
TEST_CASE("alltoall refuses to take more from a rank than it has") {
  RunOptions options;
  options.closes = false;  // nobody gets through
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 1, 1}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_ranks(shape, options, [](RankContext& context) {
      const Splits splits(static_cast<std::size_t>(context.size), {0, 5, 3});
      const auto operation = make_alltoall(context, ElementType::kInt32, splits, 1, 1);
      for (int rank = 0; rank < context.size; ++rank)
        if (rank != context.rank)
          operation->request.counts_by_rank[static_cast<std::size_t>(rank)] =
              splits[0][static_cast<std::size_t>(context.rank)] - 1;
      bool has_made_room = false;
      operation->request.make_room = [&](const std::vector<std::int64_t>&) {
        has_made_room = true;
        return nullptr;
      };
      const Status status = context.run(std::move(operation->request));
      require(status.code == StatusCode::kSystem && !has_made_room, "refused: " + status.message);
      const std::string first = context.rank == 0 ? "rank 1" : "rank 0";
      require(status.message.find(first + " of the set sends ") != std::string::npos,
              status.message);
    });
  }
}

TEST_CASE("alltoall hands every part to its rank, whatever the splits") {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [](RankContext& context) {
      const auto size = static_cast<std::size_t>(context.size);
      Splits even(size, std::vector<std::int64_t>(size, 1000));
      run_and_verify(context, make_alltoall(context, ElementType::kInt32, even, 1, 1));
      Splits none(size, std::vector<std::int64_t>(size, 0));
      run_and_verify(context, make_alltoall(context, ElementType::kInt32, none, 1, 2));
      Splits all_to_last = none;
      for (auto& row : all_to_last) row.back() = 10007;
      run_and_verify(context, make_alltoall(context, ElementType::kUint8, all_to_last, 1, 3));
      Splits first_to_all = none;
      for (auto& count : first_to_all.front()) count = 9001;
      run_and_verify(context, make_alltoall(context, ElementType::kFloat64, first_to_all, 1, 4));
      for (std::uint64_t seed = 5; seed < 25; ++seed)
        run_and_verify(
            context,
            make_alltoall(context, all_types()[seed % all_types().size()],
                          random_splits(context.size, seed % 2 ? 20 : 3000, seed), seed % 4, seed));
    });
  }
}

// Behind the head, or in blocks of their own: each rank by itself.
TEST_CASE("alltoall hands over what just fits behind its head, and what just does not") {
  for (const int ranks : {2, 3, 5}) {
    CAPTURE(ranks);
    const std::int64_t room =
        static_cast<std::int64_t>(many_blocks().config.slot_bytes) - 8 * ranks;
    run_ranks({ranks}, many_blocks(), [room](RankContext& context) {
      for (std::int64_t beyond = -2; beyond <= 2; ++beyond) {
        Splits splits;
        for (int rank = 0; rank < context.size; ++rank) {
          auto& row = splits.emplace_back(static_cast<std::size_t>(context.size), 1);
          const std::int64_t others = context.size - 2, own_beyond = rank % 2 ? beyond : -beyond;
          row[static_cast<std::size_t>((rank + 1) % context.size)] = room - others + own_beyond;
        }
        run_and_verify(context, make_alltoall(context, ElementType::kUint8, splits, 1, 7));
      }
    });
  }
}

TEST_CASE("no rank leaves a barrier before all have come") {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    std::atomic<int> arrived{0};
    run_ranks(shape, many_blocks(), [&](RankContext& context) {
      for (int round = 1; round <= 50; ++round) {
        ++arrived;
        CollectiveRequest request;
        request.kind = CollectiveKind::kBarrier;
        context.at("barrier " + std::to_string(round));
        require(context.run(request).ok(), "barrier");
        require(arrived >= round * context.size, "everybody had arrived");
      }
    });
  }
}

TEST_CASE("collectives in flight together complete whatever order each rank advances them in") {
  const auto rounds = static_cast<std::uint64_t>(std::min(5, scaled(50)));
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [&](RankContext& context) {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::vector<std::unique_ptr<CheckedOperation>> operations;
        for (std::uint64_t i = 0; i < 12; ++i)
          operations.push_back(make_random(context, round * 100 + i));
        run_together(context, std::move(operations), round);
      }
    });
  }
}

TEST_CASE("operations on tensors at odd addresses equal the reference") {
  const int rounds = std::max(20, scaled(60));  // each collective comes up within a few
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    run_ranks(shape, many_blocks(), [&](RankContext& context) {
      for (int i = 0; i < rounds; ++i) {
        const auto seed = static_cast<std::uint64_t>(i);
        // Another offset on each rank.
        const std::size_t shift = 1 + (seed + static_cast<std::uint64_t>(context.rank)) % 15;
        run_and_verify(context, misaligned(make_random(context, 9000 + seed), shift));
      }
    });
  }
}

TEST_CASE("random operations equal the reference while threads yield at flags") {
  const SeededYields yields(17);
  const int rounds = scaled(60);
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    for (const RankKind kind : {RankKind::kThreadsOneMapping, RankKind::kThreadsMemfd}) {
      RunOptions options = many_blocks();
      options.kind = kind;
      options.deadline = std::chrono::seconds(240);
      run_ranks(shape, options, [&](RankContext& context) {
        for (int i = 0; i < rounds; ++i)
          run_and_verify(context, make_random(context, 5000 + static_cast<std::uint64_t>(i)));
      });
    }
  }
}

TEST_CASE("large tensors with slots of the usual size equal the reference, past the caches too") {
  const auto large =
      static_cast<std::size_t>(std::max(400011, scaled(4400011)));  // 17.6 MB: streamed
  for (const JobShape& shape : {JobShape{2}, {3}, {2, 2}, {1, 1}, {1, 1, 1}}) {
    CAPTURE(name_of(shape));
    run_ranks(shape, {}, [&](RankContext& context) {
      const std::vector<std::size_t> pieces = {large, 3, 100000};
      const std::vector<std::int64_t> counts(static_cast<std::size_t>(context.size),
                                             static_cast<std::int64_t>(large));
      for (const bool in_place : {false, true}) {
        run_and_verify(context,
                       make_allreduce(context, allreduce_of(ElementType::kFloat32, Reduction::kSum),
                                      pieces, in_place, 9));
        run_and_verify(context, make_broadcast(context, ElementType::kFloat32, context.size - 1,
                                               pieces, in_place ? 2 : 3));
      }
      run_and_verify(context, make_allgather(context, ElementType::kInt16, counts, 10));
    });
  }
}

// What is in flight is more than a connection holds, and each waits behind the one before.
TEST_CASE("large operations of every kind are in flight together, small ones beside them") {
  for (const JobShape& shape : {JobShape{1, 1}, {1, 1, 1}, {1, 2}}) {
    CAPTURE(name_of(shape));
    run_ranks(shape, {}, [](RankContext& context) {
      const CollectiveRequest sum = allreduce_of(ElementType::kFloat32, Reduction::kSum);
      const std::vector<std::int64_t> counts(static_cast<std::size_t>(context.size), 300'001);
      std::vector<std::unique_ptr<CheckedOperation>> all;
      for (const std::uint64_t seed : {2, 3}) {
        all.push_back(make_broadcast(context, ElementType::kInt16, 0, {700'001}, seed));
        all.push_back(make_allreduce(context, sum, {350'003}, seed == 2, seed));
        all.push_back(make_alltoall(context, ElementType::kInt16,
                                    random_splits(context.size, 400'000, seed), 1, seed));
        all.push_back(make_allgather(context, ElementType::kInt32, counts, seed));
        all.push_back(make_reducescatter(context, sum, {350'003}, 1, seed));
        all.push_back(make_allreduce(context, sum, {7}, true, seed));
        all.push_back(make_broadcast(context, ElementType::kInt16, 0, {7}, seed));
      }
      run_together(context, std::move(all), 1);
    });
  }
}

}  // namespace hv::runtime
