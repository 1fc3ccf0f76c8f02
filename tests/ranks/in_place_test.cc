// Allreduce of tensors in memory that the ranks of a host share, beside tensors that lie elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <barrier>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "tests/ranks/in_heap.h"
#include "tests/ranks/seeded_yields.h"

namespace hv::runtime {
namespace {

// The result comes back to where a checked operation looks for it.
std::unique_ptr<InHeap> move_to_heap(const RankContext& context, CheckedOperation& operation,
                                     std::size_t misaligned, std::size_t every = 1) {
  auto memory = std::make_unique<InHeap>(context, operation.request, misaligned, every);
  operation.bring_back = [moved = memory.get()] { moved->bring_back(); };
  return memory;
}

RunOptions in_place_options(RankKind kind) {
  RunOptions options;
  options.kind = kind;
  options.config.slot_bytes = 4096;  // a tensor has many blocks
  options.config.heap_bytes = 16 << 20;
  options.algorithms = "allreduce:inplace";
  return options;
}

enum class Where { kAll, kNone, kLastRankElsewhere, kSomeElsewhere };

void run_where(RankContext& context, std::unique_ptr<CheckedOperation> operation, Where where,
               std::size_t misaligned) {
  const bool moves = where != Where::kNone &&
                     !(where == Where::kLastRankElsewhere && context.rank == context.size - 1);
  if (!moves) return run_and_verify(context, std::move(operation));
  const auto memory =
      move_to_heap(context, *operation, misaligned, where == Where::kSomeElsewhere ? 2 : 1);
  run_and_verify(context, std::move(operation));
}

template <class Body>
void for_each_kind(Body&& body) {
  for (const RankKind kind : {RankKind::kThreadsOneMapping, RankKind::kThreadsMemfd})
    for (const int ranks : {2, 3, 5}) {
      INFO(ranks);
      run_ranks({ranks}, in_place_options(kind), body);
    }
}

// Numbers in a rank's heap that are its own whenever no operation runs.
class OwnNumbers {
 public:
  OwnNumbers(RankContext& context, std::size_t most)
      : heap_(*host_of(context).memory().own_heap()), memory_(heap_.allocate(4 * most)) {
    require(memory_ != nullptr, "room in the heap");
    all_ = {reinterpret_cast<std::uint32_t*>(memory_), most};
    give_up();
  }
  OwnNumbers(const OwnNumbers&) = delete;
  OwnNumbers& operator=(const OwnNumbers&) = delete;
  ~OwnNumbers() { heap_.release(memory_); }

  std::span<std::uint32_t> all() const { return all_; }
  void give_up() const { std::ranges::fill(all_, kNoise); }
  bool are_untouched() const {
    return std::ranges::all_of(all_, [](std::uint32_t value) { return value == kNoise; });
  }

 private:
  static constexpr std::uint32_t kNoise = 0xeeeeeeee;
  SharedHeap& heap_;
  std::byte* const memory_;
  std::span<std::uint32_t> all_;
};

std::uint32_t value_of(int rank, int round, std::size_t at) {
  return static_cast<std::uint32_t>(rank * 1000 + round) + static_cast<std::uint32_t>(at);
}

// Rounds of sums whose memory is overwritten as soon as it is this rank's again: whoever reads it
// later has a wrong result, whoever writes it later is found in the next round. Half of the ranks
// overwrite before they have looked at their own.
void overwrite_at_once(RankContext& context, int rounds) {
  const std::size_t counts[] = {1, 5003, 20000};
  const OwnNumbers inputs(context, counts[2]), outputs(context, counts[2]);
  for (int round = 0; round < rounds; ++round) {
    const std::size_t count = counts[round % 3];
    const OwnNumbers& target = round % 2 == 0 ? inputs : outputs;
    require(inputs.are_untouched() && outputs.are_untouched(), "nobody writes after completion");
    for (std::size_t i = 0; i < count; ++i) inputs.all()[i] = value_of(context.rank, round, i);
    CollectiveRequest request = allreduce_of(ElementType::kInt32, Reduction::kSum);
    request.segments = {{reinterpret_cast<const std::byte*>(inputs.all().data()),
                         reinterpret_cast<std::byte*>(target.all().data()),
                         static_cast<std::int64_t>(count)}};
    context.at("round " + std::to_string(round));
    require(context.run(request).ok(), "sum");
    bool is_right = true;
    for (std::size_t i = 0; i < count && (round + context.rank) % 2 == 0; ++i) {
      std::uint32_t sum = 0;
      for (int rank = 0; rank < context.size; ++rank) sum += value_of(rank, round, i);
      is_right = is_right && target.all()[i] == sum;
    }
    inputs.give_up();
    outputs.give_up();
    require(is_right, "the sum of round " + std::to_string(round));
  }
}

// Nobody has written into the second block of the ring that large operations use.
bool are_slots_untouched(const RankContext& context) {
  const std::byte* slot = host_of(context).slot(host_of(context).index(), 0, 1);
  for (std::size_t i = 0; i < 4096; ++i)
    if (slot[i] != std::byte{0}) return false;
  return true;
}

}  // namespace

TEST_CASE("tensors in shared memory give the reference's result, wherever the other ranks' lie") {
  for_each_kind([](RankContext& context) {
    std::uint64_t seed = 1;
    for (const ElementType type : all_types())
      for (const Where where :
           {Where::kAll, Where::kNone, Where::kLastRankElsewhere, Where::kSomeElsewhere}) {
        ++seed;
        const Reduction reduction = all_reductions()[seed % all_reductions().size()];
        for (const std::size_t count : {1UL, 5003UL, 40000UL})
          run_where(context,
                    make_allreduce(context, allreduce_of(type, reduction), {count, 0, 77},
                                   seed % 2 == 0, seed),
                    where, seed % 3);
      }
  });
}

TEST_CASE("where all tensors lie in shared memory, nothing goes through the slots") {
  for (const Where where : {Where::kAll, Where::kLastRankElsewhere}) {
    run_ranks({3}, in_place_options(RankKind::kThreadsOneMapping), [&](RankContext& context) {
      const CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kSum);
      run_where(context, make_allreduce(context, request, {30000, 0}, true, 7), where, 0);
      require(are_slots_untouched(context) == (where == Where::kAll),
              "the slots are used only where a tensor lies elsewhere");
    });
  }
}

TEST_CASE("memory of a complete operation is read and written by no other rank any more") {
  const SeededYields yields(29);
  for_each_kind([](RankContext& context) { overwrite_at_once(context, 200); });
}

TEST_CASE("averages and scales are the same in shared memory") {
  for_each_kind([](RankContext& context) {
    CollectiveRequest request = allreduce_of(ElementType::kBfloat16, Reduction::kSum);
    request.divisor = context.size;
    run_where(context, make_allreduce(context, request, {30001}, true, 3), Where::kAll, 0);
    request.postscale = 0.25;
    run_where(context, make_allreduce(context, request, {30001, 5}, false, 4), Where::kAll, 1);
    request.prescale = 3;  // rounded before it is folded: through the slots
    run_where(context, make_allreduce(context, request, {30001, 5}, false, 5), Where::kAll, 0);
  });
}

// Who has heard of a loss may give its tensors back, while others still read them.
TEST_CASE("a sum in shared memory does not complete once a rank of the host has heard of a loss") {
  RunOptions options = in_place_options(RankKind::kThreadsOneMapping);
  options.config.heap_bytes = 64 << 20;
  options.closes = false;
  std::barrier together(2);
  run_ranks({2}, options, [&](RankContext& context) {
    const OwnNumbers numbers(context, 4 << 20);
    auto* const memory = reinterpret_cast<std::byte*>(numbers.all().data());
    CollectiveRequest request = allreduce_of(ElementType::kInt32, Reduction::kSum);
    request.segments = {{memory, memory, std::ssize(numbers.all())}};
    const std::unique_ptr<Collective> sum = context.backend.start(std::move(request));
    Progress progress = sum->advance();
    together.arrive_and_wait();  // both have said where their tensors lie
    while (progress != Progress::kPaused) progress = sum->advance();
    if (context.rank == 1) host_of(context).memory().publish_loss(0, "rank 0 gave up: it broke");
    together.arrive_and_wait();
    // As one turn in which the fabric is not looked at.
    for (int turn = 0; turn < 1000; ++turn) progress = sum->advance();
    require(progress == Progress::kPending, "neither done nor told of it");
    together.arrive_and_wait();
    context.fabric.progress();
    require(sum->advance() == Progress::kFailed, "told of it");
    require(sum->status().message == "rank 0 gave up: it broke", sum->status().message);
  });
}

TEST_CASE("operations in shared memory run between others, several at once") {
  for_each_kind([](RankContext& context) {
    for (std::uint64_t round = 0; round < 6; ++round) {
      std::vector<std::unique_ptr<CheckedOperation>> operations;
      std::vector<std::unique_ptr<InHeap>> memory;
      for (std::uint64_t i = 0; i < 4; ++i) {
        operations.push_back(make_random(context, round * 100 + i));
        operations.push_back(make_allreduce(context,
                                            allreduce_of(ElementType::kInt32, Reduction::kSum),
                                            {20000, 3}, i % 2 == 0, i));
        const bool is_half = i == 2 && context.rank == 0;
        memory.push_back(move_to_heap(context, *operations.back(), i, is_half ? 2 : 1));
      }
      run_together(context, std::move(operations), round);
    }
  });
}

}  // namespace hv::runtime
