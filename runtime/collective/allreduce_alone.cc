// Allreduce of one rank: scale the input into the output. No steps, no bytes between ranks.
// SPDX-License-Identifier: Apache-2.0
//
// The two scalings round to the type one after the other, as they would with peers.
#include "runtime/collective/allreduce.h"

namespace hv::runtime {
namespace {

class AllreduceAlone : public Allreduce {
 public:
  explicit AllreduceAlone(CollectiveSetup setup) : Allreduce(std::move(setup), 0, BlockPlan{}) {}

 private:
  bool step() override {
    if (is_done_) return false;
    const std::size_t element = element_bytes();
    for (const Segment& segment : setup_.request.segments) {
      const auto count = static_cast<std::size_t>(segment.count);
      const void* source = segment.input;
      if (is_prescaled()) {
        setup_.kernels.scale[static_cast<int>(setup_.request.type)](segment.output, source, count,
                                                                    setup_.request.prescale);
        source = segment.output;
      }
      const bool has_work = source != segment.output || finish_.factor != 1 || finish_.divisor != 1;
      if (has_work && count * element > 0) reduce_(segment.output, &source, 1, count, finish_);
    }
    return is_done_ = true;
  }
  bool is_complete() const override { return is_done_; }

  bool is_done_ = false;
};

}  // namespace

std::unique_ptr<Collective> allreduce_alone(CollectiveSetup setup) {
  return std::make_unique<AllreduceAlone>(std::move(setup));
}

}  // namespace hv::runtime
