// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/pair_memory.h"

#include "runtime/engine/attempt.h"

namespace hv::runtime {

Status PairMemory::of_input(const Operation& operation, PairMemory* made) {
  const auto bytes = static_cast<std::size_t>(operation.description.bytes());
  made->input_ = operation.input;
  if (operation.device == kHostDevice || bytes == 0) return Status::success();
  made->accelerator_ = operation.accelerator;
  const Status status = operation.accelerator->allocate(
      operation.device, Accelerator::Room::kPinned, bytes, &made->pinned_);
  made->input_ = made->pinned_.get();
  return status;
}

Status PairMemory::of_result(const Operation& operation, PairMemory* made) {
  made->output_ = operation.output;
  if (operation.device == kHostDevice || operation.result_bytes == 0) return Status::success();
  made->accelerator_ = operation.accelerator;
  const Status status = operation.accelerator->allocate(
      operation.device, Accelerator::Room::kPinned, operation.result_bytes, &made->pinned_);
  made->output_ = made->pinned_.get();
  return status;
}

Status PairMemory::bring(const Operation& operation) {
  if (pinned_ == nullptr) return Status::success();
  if (copied_ != nullptr) return accelerator_->poll(*copied_);
  Status status = accelerator_->poll(*operation.ready);
  if (status.ok())
    status = accelerator_->copy(operation.device, Accelerator::Way::kToHost, pinned_.get(),
                                operation.input,
                                static_cast<std::size_t>(operation.description.bytes()));
  if (status.ok()) status = accelerator_->mark_work(operation.device, &copied_);
  return status.ok() ? Status{StatusCode::kInProgress, {}} : status;
}

Status PairMemory::hand_over(const Operation& operation, MomentPtr* ended) const {
  if (pinned_ == nullptr) return Status::success();
  Status status = accelerator_->poll(*operation.ready);
  if (status.ok())
    status = accelerator_->copy(operation.device, Accelerator::Way::kToDevice, operation.output,
                                pinned_.get(), operation.result_bytes);
  if (status.ok()) status = accelerator_->mark_work(operation.device, ended);
  if (status.ok()) accelerator_->keep_until(*ended, pinned_);
  return status;
}

void PairMemory::give_up() noexcept {
  if (copied_ != nullptr) attempt([&] { accelerator_->keep_until(copied_, pinned_); });
}

}  // namespace hv::runtime
