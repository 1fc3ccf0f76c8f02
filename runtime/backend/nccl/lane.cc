// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/lane.h"

#include <algorithm>
#include <bit>

#include "runtime/backend/nccl/ends.h"
#include "runtime/backend/nccl/nccl_types.h"

namespace hv::nccl {
namespace {

constexpr std::size_t kLeastRoom = std::size_t{1} << 20;
constexpr std::size_t kRoomStep = std::size_t{64} << 20;  // of large ones
constexpr std::size_t kMostScaledSums = 16;

std::size_t room_size(std::size_t bytes) {
  if (bytes <= kRoomStep) return std::bit_ceil(std::max(bytes, kLeastRoom));
  return (bytes + kRoomStep - 1) / kRoomStep * kRoomStep;
}

}  // namespace

Status LaneStreams::open(cuda::Device& device, LaneStreams* made) {
  for (cuda::Device::StreamPtr* stream : {&made->in, &made->work, &made->out})
    if (Status status = device.open_stream(stream); !status.ok()) return status;
  return Status::success();
}

Lane::Lane(std::unique_ptr<Communicator> communicator,
           std::shared_ptr<runtime::Accelerator> accelerator,
           std::shared_ptr<const cuda::Kernels> kernels, LaneStreams streams, bool has_windows)
    : communicator_(std::move(communicator)),
      accelerator_(std::move(accelerator)),
      kernels_(std::move(kernels)),
      streams_(std::move(streams)),
      has_windows_(has_windows) {}

// What the GPU may still read or write stays until it has.
Lane::~Lane() {
  Leftovers left;
  for (const cuda::Stream stream : {in(), work(), out()}) {
    runtime::MomentPtr end;
    if (device().mark(stream, &end).ok()) left.moments.push_back(std::move(end));
  }
  for (Rooms* const rooms : {&rooms_, &windows_})
    for (Room& room : *rooms)
      if (room.memory != nullptr) left.memory.push_back(std::move(room.memory));
  left.communicator = std::move(communicator_);
  left.accelerator = accelerator_;
  left.streams = std::move(streams_);
  Ends::of_process().take(std::move(left));
}

Status Lane::take(Rooms& rooms, std::size_t* number, std::byte** memory) {
  *number = after(*number);
  last_ = &rooms[*number];
  *memory = last_->memory.get();
  return last_->free == nullptr ? Status::success() : device().wait_in(in(), *last_->free);
}

Status Lane::take_room(std::size_t bytes, std::byte** memory) {
  Room& room = rooms_[after(room_)];
  if (bytes > room.bytes) {
    if (room.memory != nullptr) accelerator_->keep_until(room.free, std::move(room.memory));
    room = {};
    const std::size_t wanted = room_size(bytes);
    if (Status status = device().allocate(wanted, &room.memory); !status.ok()) return status;
    room.bytes = wanted;
  }
  return take(rooms_, &room_, memory);
}

// The communicator has the old one, too, until it goes: peers may have to do with it still, and of
// all that were too small there is less than of the last.
Status Lane::begin_window(std::size_t bytes) {
  Room& window = windows_[after(window_)];
  if (window.memory != nullptr) accelerator_->keep_until(window.free, std::move(window.memory));
  window = {};
  window.bytes = room_size(bytes);
  return communicator_->begin_window(window.bytes, &window.memory);
}

Status Lane::take_window(std::byte** memory) { return take(windows_, &window_, memory); }

Status Lane::keep_order() {
  runtime::MomentPtr& last = communicator_->job().last_starts[device().ordinal()];
  if (last != nullptr)
    if (Status status = device().wait_in(work(), *last); !status.ok()) return status;
  return device().mark(work(), &last);
}

// NCCL lets go of one as soon as the last call that is given it has returned, and those of earlier
// turns have. A loss scale may be another one each step.
Status Lane::scaled_sum(runtime::ElementType type, double factor, int* reduction) {
  auto found = std::find_if(scaled_sums_.begin(), scaled_sums_.end(), [&](const ScaledSum& one) {
    return one.type == type && one.factor == factor;
  });
  if (found == scaled_sums_.end()) {
    if (scaled_sums_.size() == kMostScaledSums) {
      const int result =
          call().destroy_reduction(scaled_sums_.back().reduction, communicator_->get());
      scaled_sums_.pop_back();
      Status status = communicator_->library().check(result, "give back a scaled sum");
      if (!status.ok()) return status;
    }
    ScaledSum made{type, factor, 0};
    Scalar scalar = scalar_of(type, factor);
    const int result = call().make_premultiplied_sum(&made.reduction, scalar.bytes, *type_of(type),
                                                     kScalarImmediate, communicator_->get());
    Status status = communicator_->library().check(result, "make a scaled sum");
    if (!status.ok()) return status;
    found = scaled_sums_.insert(scaled_sums_.end(), made);
  }
  std::rotate(scaled_sums_.begin(), found, found + 1);
  *reduction = scaled_sums_.front().reduction;
  return Status::success();
}

Status Lane::watch() {
  Status status = communicator_->poll("carry out what the GPU was given");
  return status.code == StatusCode::kInProgress ? Status::success() : status;
}

}  // namespace hv::nccl
