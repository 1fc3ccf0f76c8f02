// Barrier: nobody leaves before everybody has come: an allreduce of one byte.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/algorithms.h"

#include "runtime/collective/registry.h"

namespace hv::runtime {
namespace {

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

}  // namespace

std::unique_ptr<Collective> barrier(CollectiveSetup setup) {
  return std::make_unique<Barrier>(std::move(setup));
}

}  // namespace hv::runtime
