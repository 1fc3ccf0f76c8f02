// Allreduce on one host of tensors that lie in shared memory: every rank reduces its share where it
// is.
// SPDX-License-Identifier: Apache-2.0
//
//   1. each rank writes into its slot where its tensors lie in its heap (shared_heap.h), or that
//      they do not; raise Ready.
//   2. reduce: when all are Ready, each rank folds its share, the n-th part of all elements, from
//      the inputs of all ranks, in rank order, into the outputs of all; raise Reduced. When all
//      are: complete.
// Two steps of waiting; per rank B read and B written, nothing copied. If the tensors of any rank
// lie elsewhere, all ranks see that in step 1 and go on through the slots. Each element's fold is
// the same as there, so the bits do not depend on where tensors lie.
#include <algorithm>
#include <vector>

#include "runtime/collective/allreduce/allreduce.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/ring_collective.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;  // reduced at once; then a loss is looked for

// Where a segment lies in its rank's heap.
struct Place {
  std::uint64_t input, output;  // kElsewhere: not there
};
constexpr std::uint64_t kElsewhere = UINT64_MAX;

class AllreduceInPlace : public RingCollective {
 public:
  // plan: what goes through the slots if it must, in the blocks behind that of the places.
  AllreduceInPlace(CollectiveSetup setup, int ring, const BlockPlan& plan)
      : RingCollective(std::move(setup), ring, 1 + plan.blocks),
        bytes_(plan.total_bytes),
        walk_(setup_.request.segments, element_bytes()),
        finish_(finish_of(setup_.request)),
        reduce_(setup_.kernels.reduce_step_for(setup_.request.type, setup_.request.reduction)),
        sources_(static_cast<std::size_t>(host_.ranks())) {}

 private:
  enum class Stage { kTell, kLearn, kReduce, kAwait, kThroughSlots, kDone };

  bool step() override {
    switch (stage_) {
      case Stage::kTell:
        return tell();
      case Stage::kLearn:
        return learn();
      case Stage::kReduce:
        return reduce_next();
      case Stage::kAwait:
        return await_others();
      case Stage::kThroughSlots:
        return go_through_slots();
      case Stage::kDone:
        return false;
    }
    return false;
  }
  bool is_complete() const override { return stage_ == Stage::kDone; }

  std::size_t segments() const { return setup_.request.segments.size(); }
  std::size_t bytes_of(const Segment& segment) const {
    return static_cast<std::size_t>(segment.count) * element_bytes();
  }
  const Place* places_of(int local) const { return reinterpret_cast<const Place*>(slot(local, 0)); }

  bool tell() {
    if (!is_slot_free(0)) return false;
    auto* places = reinterpret_cast<Place*>(slot(me_, 0));
    const SharedHeap& heap = *host_.memory().own_heap();
    for (const Segment& segment : setup_.request.segments) {
      const std::size_t bytes = bytes_of(segment);
      std::size_t input = 0, output = 0;
      const bool is_there = bytes == 0 || (heap.find(segment.input, bytes, &input) &&
                                           heap.find(segment.output, bytes, &output));
      *places++ = is_there ? Place{input, output} : Place{kElsewhere, kElsewhere};
      if (!is_there) break;  // the others look no further
    }
    raise(Flag::kReady, 1);
    stage_ = Stage::kLearn;
    return true;
  }

  bool learn() {
    if (!have_all_reached(Flag::kReady, 1)) return false;
    bases_.reserve(segments() * sources_.size());
    bool is_there = true;
    for (int local = 0; local < host_.ranks() && is_there; ++local) is_there = take_places(local);
    // A slot is filled again when all are done with it.
    raise(Flag::kDone, 1);
    if (!is_there) return start_through_slots();
    const Range own = cut(bytes_, host_.ranks(), me_);
    at_ = own.begin;
    end_ = own.begin + own.size;
    stage_ = Stage::kReduce;
    return true;
  }

  bool take_places(int local) {
    std::byte* const heap = host_.memory().heap(host_.local_of(local));
    const std::size_t size = host_.memory().heap_bytes();
    for (std::size_t i = 0; i < segments(); ++i) {
      const Place place = places_of(local)[i];
      const std::size_t bytes = bytes_of(setup_.request.segments[i]);
      if (place.input > size || bytes > size - place.input || place.output > size ||
          bytes > size - place.output)
        return false;
      bases_.push_back({heap + place.input, heap + place.output});
    }
    return true;
  }

  bool reduce_next() {
    // The others write here, too: after a loss nobody begins another piece.
    if (!setup_.plane.is_healthy()) return false;
    if (at_ == end_) {
      // A rank that had heard of one may have given its tensors back while they were read here.
      if (host_.memory().has_loss()) return false;
      raise(Flag::kReduced, blocks());
      stage_ = Stage::kAwait;
      return true;
    }
    const auto own = walk_.piece(at_, std::min(kPieceBytes, end_ - at_));
    const auto base = [&](std::size_t r) { return bases_[r * segments() + own.segment]; };
    copies_.clear();
    for (std::size_t r = 0; r < sources_.size(); ++r) {
      sources_[r] = base(r).input + own.offset;
      if (static_cast<int>(r) != me_) copies_.push_back(base(r).output + own.offset);
    }
    ReduceStep step;
    step.destination = own.output;
    step.copies = copies_.data();
    step.copy_count = static_cast<int>(copies_.size());
    step.sources = sources_.data();
    step.source_count = host_.ranks();
    step.count = own.bytes / element_bytes();
    step.finish = finish_;
    reduce_(step);
    at_ += own.bytes;
    return true;
  }

  bool await_others() {
    if (!have_all_reached(Flag::kReduced, blocks())) return false;
    raise(Flag::kDone, blocks());
    stage_ = Stage::kDone;
    return true;
  }

  bool start_through_slots() {
    nested_ = RingQueue(ring(), first_block() + 1);
    CollectiveSetup setup{setup_.plane, nested_, setup_.kernels, std::move(setup_.request),
                          setup_.wishes};
    through_slots_ = allreduce_through_slots(std::move(setup));
    stage_ = Stage::kThroughSlots;
    return true;
  }

  bool go_through_slots() {
    const Progress progress = through_slots_->advance();
    if (progress == Progress::kDone) stage_ = Stage::kDone;
    if (progress == Progress::kFailed) give_up(through_slots_->status());
    return progress == Progress::kDone || has_advanced(progress);
  }

  // Of a segment in a rank's heap.
  struct Base {
    const std::byte* input;
    std::byte* output;
  };

  const std::size_t bytes_;  // of all segments
  SegmentWalk walk_;
  const Finish finish_;
  const ReduceStepKernel reduce_;
  std::vector<const void*> sources_;  // of a piece
  std::vector<void*> copies_;         // its outputs on the other ranks
  std::vector<Base> bases_;           // by rank, by segment
  Stage stage_ = Stage::kTell;
  std::size_t at_ = 0, end_ = 0;  // bytes of this rank's share, segments laid end to end
  RingQueue nested_;
  std::unique_ptr<Collective> through_slots_;
};

// All ranks know alike that there is no point in asking.
bool can_be_in_place(const CollectiveSetup& setup) {
  const CollectiveRequest& request = setup.request;
  const SlotRings& host = setup.plane.host();
  return host.memory().heap_bytes() > 0 && request.prescale == 1 &&
         request.compression == Compression::kNone &&
         request.segments.size() * sizeof(Place) <= host.slot_bytes();
}

}  // namespace

std::unique_ptr<Collective> allreduce_in_place(CollectiveSetup setup) {
  if (!can_be_in_place(setup)) return allreduce_through_slots(std::move(setup));
  const BlockPlan plan = plan_blocks(setup.request, setup.plane.host().slot_bytes());
  const int ring = setup.rings.choose(plan.total_bytes);
  return std::make_unique<AllreduceInPlace>(std::move(setup), ring, plan);
}

}  // namespace hv::runtime
