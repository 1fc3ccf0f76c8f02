// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/lane.h"

#include <algorithm>
#include <bit>

#include "runtime/backend/nccl/ends.h"
#include "runtime/backend/nccl/nccl_types.h"

namespace hv::nccl {
namespace {

constexpr std::size_t kLeastRoom = std::size_t{1} << 20;

}  // namespace

Status LaneStreams::open(cuda::Device& device, LaneStreams* made) {
  for (cuda::Device::StreamPtr* stream : {&made->in, &made->work, &made->out})
    if (Status status = device.open_stream(stream); !status.ok()) return status;
  return Status::success();
}

Lane::Lane(std::unique_ptr<Communicator> communicator,
           std::shared_ptr<runtime::Accelerator> accelerator,
           std::shared_ptr<const cuda::Kernels> kernels, LaneStreams streams)
    : communicator_(std::move(communicator)),
      accelerator_(std::move(accelerator)),
      kernels_(std::move(kernels)),
      streams_(std::move(streams)) {}

// What the GPU may still read or write stays until it has.
Lane::~Lane() {
  Leftovers left;
  for (const cuda::Stream stream : {in(), work(), out()}) {
    runtime::MomentPtr end;
    if (device().mark(stream, &end).ok()) left.moments.push_back(std::move(end));
  }
  for (Room& room : rooms_)
    if (room.memory != nullptr) left.memory.push_back(std::move(room.memory));
  left.communicator = std::move(communicator_);
  left.accelerator = accelerator_;
  left.streams = std::move(streams_);
  Ends::of_process().take(std::move(left));
}

Status Lane::take_room(std::size_t bytes, std::byte** memory) {
  room_ = (room_ + 1) % rooms_.size();
  Room& room = rooms_[room_];
  if (bytes > room.bytes) {
    if (room.memory != nullptr) accelerator_->keep_until(room.free, std::move(room.memory));
    room = {};
    const std::size_t wanted = std::bit_ceil(std::max(bytes, kLeastRoom));
    if (Status status = device().allocate(wanted, &room.memory); !status.ok()) return status;
    room.bytes = wanted;
  }
  *memory = room.memory.get();
  return room.free == nullptr ? Status::success() : device().wait_in(in(), *room.free);
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
  Status status = communicator_->poll("carry out what the GPU was given");
  return status.code == StatusCode::kInProgress ? Status::success() : status;
}

void Lane::abort() { communicator_->abort(); }

}  // namespace hv::nccl
