// Allreduce on one host, direct: every rank reads every other rank's input and computes the whole
// result.
// SPDX-License-Identifier: Apache-2.0
//
// For each block of the tensor, with n ranks:
//   1. copy in: this rank's block into its slot; raise Ready.
//   2. reduce: when all are Ready, fold the n blocks in rank order into the output (this rank's own
//      block is read from the input, still in the cache); raise Done.
// A slot is filled again once everybody is Done with it, so blocks overlap as far as the ring has
// slots. One step of waiting; each rank copies B bytes and reads (n-1) * B from its peers. Best for
// two ranks at any size, and for more as long as the tensor is small. The fold's order is that of
// the ranks at every element: the bits depend on nothing else.
#include <vector>

#include "runtime/collective/allreduce/allreduce.h"

namespace hv::runtime {
namespace {

class AllreduceDirect : public Allreduce {
 public:
  AllreduceDirect(CollectiveSetup setup, int ring, const BlockPlan& plan)
      : Allreduce(std::move(setup), ring, plan),
        in_walk_(setup_.request.segments, element_bytes()),
        out_walk_(setup_.request.segments, element_bytes()),
        step_(setup_.kernels.reduce_step_for(setup_.request.type, setup_.request.reduction)),
        sources_(static_cast<std::size_t>(host_.ranks())) {}

 private:
  bool step() override { return reduce_next() || copy_in_next(); }
  bool is_complete() const override { return out_ == blocks(); }

  bool copy_in_next() {
    if (in_ == blocks() || !is_slot_free(in_)) return false;
    copy_in(&in_walk_, plan_.begin(in_), plan_.size(in_), slot(me_, in_));
    raise(Flag::kReady, ++in_);
    return true;
  }

  bool reduce_next() {
    if (out_ == in_ || !have_all_reached(Flag::kReady, out_ + 1)) return false;
    const std::size_t size = plan_.size(out_);
    for (std::size_t done = 0; done < size;) {
      const auto target = out_walk_.piece(plan_.begin(out_) + done, size - done);
      step_(step_of(target, done));
      done += target.bytes;
    }
    raise(Flag::kDone, ++out_);
    return true;
  }

  ReduceStep step_of(const SegmentWalk::Piece& target, std::size_t offset) {
    for (int r = 0; r < host_.ranks(); ++r)
      sources_[static_cast<std::size_t>(r)] = slot(r, out_) + offset;
    // What was prescaled is rounded in the slot: peers see that, so this rank must too.
    if (!is_prescaled()) sources_[static_cast<std::size_t>(me_)] = target.input;
    ReduceStep step;
    step.destination = target.output;
    step.sources = sources_.data();
    step.source_count = host_.ranks();
    step.count = target.bytes / element_bytes();
    step.finish = finish_;
    step.is_streamed = is_streamed();
    return step;
  }

  SegmentWalk in_walk_;
  SegmentWalk out_walk_;
  const ReduceStepKernel step_;
  std::vector<const void*> sources_;
  std::uint64_t in_ = 0;   // blocks copied in
  std::uint64_t out_ = 0;  // blocks reduced
};

}  // namespace

std::unique_ptr<Collective> allreduce_direct(CollectiveSetup setup) {
  const BlockPlan plan = plan_blocks(setup.request, setup.plane.host().slot_bytes());
  const int ring = setup.rings.choose(plan.total_bytes);
  return std::make_unique<AllreduceDirect>(std::move(setup), ring, plan);
}

}  // namespace hv::runtime
