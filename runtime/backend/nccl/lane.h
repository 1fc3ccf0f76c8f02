// Lane: what the collectives of one communicator share: whose turn it is, and memory to pack in.
// SPDX-License-Identifier: Apache-2.0
//
// All of them use the lane's stream, one after the other, so one piece of memory serves all. Each
// communicator has a stream of its own: sets that overlap may be given theirs in another order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "runtime/backend/nccl/communicator.h"
#include "runtime/device/accelerator.h"
#include "runtime/device/element_type.h"

namespace hv::nccl {

class Lane {
 public:
  Lane(std::unique_ptr<Communicator> communicator,
       std::shared_ptr<runtime::Accelerator> accelerator, cuda::Stream stream);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Communicator& communicator() { return *communicator_; }
  runtime::Accelerator& accelerator() { return *accelerator_; }
  cuda::Device& device() { return communicator_->device(); }
  cuda::Stream stream() const { return stream_; }
  const LibraryFunctions& call() const { return communicator_->library().call(); }

  // Turns come in the order in which they were asked for.
  std::uint64_t take_turn() { return turns_++; }
  bool is_turn(std::uint64_t turn) const { return turn == current_; }
  void end_turn() { ++current_; }

  // Whoever has the turn may use as much until it ends it. kMemory: there is not so much.
  Status room(std::size_t bytes, std::byte** memory);
  // A sum whose addends are multiplied before.
  Status scaled_sum(runtime::ElementType type, double factor, int* reduction);
  // The GPU's stream has been given a collective; it is done when the moment has passed.
  void note_end(runtime::MomentPtr end) { last_end_ = std::move(end); }
  // kInProgress: the GPU still works on what it was given; or an error of that, or of NCCL's.
  Status watch();
  // Ends what runs on the GPU. Nothing is asked of the lane any more.
  void abort();

 private:
  const std::unique_ptr<Communicator> communicator_;
  const std::shared_ptr<runtime::Accelerator> accelerator_;
  const cuda::Stream stream_;
  std::uint64_t turns_ = 0, current_ = 0;
  runtime::MomentPtr last_end_;  // nullptr: nothing is under way
  runtime::MemoryPtr room_;
  std::size_t room_bytes_ = 0;
  std::map<std::pair<runtime::ElementType, double>, int> scaled_sums_;
};

}  // namespace hv::nccl
