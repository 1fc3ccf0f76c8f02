// Allreduce of one rank: scale the input into the output. No steps, no bytes between ranks.
// SPDX-License-Identifier: Apache-2.0
//
// The two scalings round to the type one after the other, as they would with peers.
#include <algorithm>

#include "runtime/collective/allreduce/allreduce.h"

namespace hv::runtime {
namespace {

class AllreduceAlone : public Allreduce {
 public:
  explicit AllreduceAlone(CollectiveSetup setup)
      : Allreduce(std::move(setup), 0, BlockPlan{}),
        walk_(setup_.request.segments, element_bytes()),
        bytes_(total_elements(setup_.request.segments) * element_bytes()) {}

 private:
  bool step() override {
    if (is_complete()) return false;
    const auto piece = walk_.piece(at_, std::min(kPassBytes, bytes_ - at_));
    const std::size_t count = piece.bytes / element_bytes();
    const void* source = piece.input;
    if (is_prescaled()) {
      setup_.kernels.scale[static_cast<int>(setup_.request.type)](piece.output, source, count,
                                                                  setup_.request.prescale);
      source = piece.output;
    }
    const bool has_work = source != piece.output || finish_.factor != 1 || finish_.divisor != 1;
    if (has_work) reduce_(piece.output, &source, 1, count, finish_);
    at_ += piece.bytes;
    return true;
  }
  bool is_complete() const override { return at_ == bytes_; }

  SegmentWalk walk_;
  const std::size_t bytes_;  // of all segments
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Collective> allreduce_alone(CollectiveSetup setup) {
  return std::make_unique<AllreduceAlone>(std::move(setup));
}

}  // namespace hv::runtime
