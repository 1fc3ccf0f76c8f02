// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/lane.h"

#include <algorithm>
#include <bit>

#include "runtime/backend/nccl/nccl_types.h"

namespace hv::nccl {
namespace {

constexpr std::size_t kLeastRoom = std::size_t{1} << 20;

}  // namespace

Lane::Lane(std::unique_ptr<Communicator> communicator,
           std::shared_ptr<runtime::Accelerator> accelerator, cuda::Stream stream)
    : communicator_(std::move(communicator)),
      accelerator_(std::move(accelerator)),
      stream_(stream) {}

// What the GPU may still write to stays until it has.
Lane::~Lane() {
  runtime::MomentPtr end;
  if (room_ != nullptr && device().mark(stream_, &end).ok())
    accelerator_->keep_until(std::move(end), std::move(room_));
}

Status Lane::room(std::size_t bytes, std::byte** memory) {
  if (bytes > room_bytes_) {
    runtime::MomentPtr end;
    if (room_ != nullptr) {
      if (Status status = device().mark(stream_, &end); !status.ok()) return status;
      accelerator_->keep_until(std::move(end), std::exchange(room_, nullptr));
      room_bytes_ = 0;
    }
    const std::size_t wanted = std::bit_ceil(std::max(bytes, kLeastRoom));
    if (Status status = device().allocate(wanted, &room_); !status.ok()) return status;
    room_bytes_ = wanted;
  }
  *memory = room_.get();
  return Status::success();
}

Status Lane::scaled_sum(runtime::ElementType type, double factor, int* reduction) {
  const auto [place, is_new] = scaled_sums_.try_emplace({type, factor}, 0);
  if (is_new) {
    Scalar scalar = scalar_of(type, factor);
    const int result = call().make_premultiplied_sum(&place->second, scalar.bytes, *type_of(type),
                                                     kScalarImmediate, communicator_->get());
    Status status = communicator_->library().check(result, "make a scaled sum");
    if (!status.ok()) scaled_sums_.erase(place);
    if (!status.ok()) return status;
  }
  *reduction = place->second;
  return Status::success();
}

Status Lane::watch() {
  if (last_end_ == nullptr) return Status::success();
  if (Status status = communicator_->poll("carry out what the GPU was given"); !status.ok())
    return status;
  Status passed = accelerator_->poll(*last_end_);
  if (passed.ok()) last_end_ = nullptr;
  return passed;
}

void Lane::abort() { communicator_->abort(); }

}  // namespace hv::nccl
