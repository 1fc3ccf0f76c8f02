// Allreduce of tensors in memory that the ranks of a host share, beside tensors that lie elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/transport.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

SlotRings& host_of(const RankContext& context) { return context.fabric.data_plane()->host(); }

// The memory of an operation's segments moved into the rank's heap while it runs.
class InHeap {
 public:
  // misaligned: bytes by which each begins behind a page's start. Every `every`-th segment moves.
  InHeap(const RankContext& context, CheckedOperation& operation, std::size_t misaligned,
         std::size_t every = 1)
      : heap_(*host_of(context).memory().own_heap()), misaligned_(misaligned) {
    const std::size_t element = element_size(operation.request.type);
    std::size_t index = 0;
    for (Segment& segment : operation.request.segments) {
      if (index++ % every != 0) continue;
      const std::size_t bytes = static_cast<std::size_t>(segment.count) * element;
      if (bytes == 0) continue;  // nobody looks where nothing lies
      Moved moved{segment.output, nullptr, nullptr, bytes};
      moved.input = heap_.allocate(bytes + misaligned);
      require(moved.input != nullptr, "room in the heap");
      std::memcpy(moved.input + misaligned, segment.input, bytes);
      moved.output = operation.is_in_place ? moved.input : heap_.allocate(bytes + misaligned);
      require(moved.output != nullptr, "room in the heap");
      segment.input = moved.input + misaligned;
      segment.output = moved.output + misaligned;
      moved_.push_back(moved);
    }
    operation.bring_back = [this] {
      for (const Moved& moved : moved_)
        std::memcpy(moved.home, moved.output + misaligned_, moved.bytes);
    };
  }
  InHeap(const InHeap&) = delete;
  InHeap& operator=(const InHeap&) = delete;
  ~InHeap() {
    for (const Moved& moved : moved_) {
      heap_.release(moved.input);
      if (moved.output != moved.input) heap_.release(moved.output);
    }
  }

 private:
  struct Moved {
    std::byte *home, *input, *output;
    std::size_t bytes;
  };
  SharedHeap& heap_;
  const std::size_t misaligned_;
  std::vector<Moved> moved_;
};

RunOptions options_for(RankKind kind) {
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
  const InHeap memory(context, *operation, misaligned, where == Where::kSomeElsewhere ? 2 : 1);
  run_and_verify(context, std::move(operation));
}

template <class Body>
void for_each_kind(Body&& body) {
  for (const RankKind kind : {RankKind::kThreadsOneMapping, RankKind::kThreadsMemfd})
    for (const int ranks : {2, 3, 5}) {
      INFO(ranks);
      run_ranks({ranks}, options_for(kind), body);
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
    run_ranks({3}, options_for(RankKind::kThreadsOneMapping), [&](RankContext& context) {
      const CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kSum);
      run_where(context, make_allreduce(context, request, {30000, 0}, true, 7), where, 0);
      require(are_slots_untouched(context) == (where == Where::kAll),
              "the slots are used only where a tensor lies elsewhere");
    });
  }
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
        memory.push_back(std::make_unique<InHeap>(context, *operations.back(), i, is_half ? 2 : 1));
      }
      run_together(context, std::move(operations), round);
    }
  });
}

}  // namespace hv::runtime
