// Lane: what the collectives of one communicator share: whose turn it is, streams, and memory to
// pack in.
// SPDX-License-Identifier: Apache-2.0
//
// Three streams, so that a bucket is packed while the one before it is reduced, and the one before
// that unpacked: two pieces of memory take turns. Each communicator has streams of its own, for a
// set's work must not wait for another's end; but it waits for its beginning: where a GPU has no
// room for the kernels of two sets, all GPUs must have begun the same one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/backend/nccl/communicator.h"
#include "runtime/device/accelerator.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/kernels.h"
#include "runtime/device/element_type.h"

namespace hv::nccl {

struct LaneStreams {
  cuda::Device::StreamPtr in;    // packs
  cuda::Device::StreamPtr work;  // NCCL's
  cuda::Device::StreamPtr out;   // unpacks

  static Status open(cuda::Device& device, LaneStreams* made);
};

class Lane {
 public:
  Lane(std::unique_ptr<Communicator> communicator,
       std::shared_ptr<runtime::Accelerator> accelerator,
       std::shared_ptr<const cuda::Kernels> kernels, LaneStreams streams, bool has_windows);
  ~Lane();  // what the GPU has been given it does all the same
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Communicator& communicator() { return *communicator_; }
  cuda::Device& device() { return communicator_->device(); }
  const cuda::Kernels& kernels() const { return *kernels_; }
  cuda::Stream in() const { return streams_.in.get(); }
  cuda::Stream work() const { return streams_.work.get(); }
  cuda::Stream out() const { return streams_.out.get(); }
  const LibraryFunctions& call() const { return communicator_->library().call(); }

  // Turns come in the order in which they were asked for.
  std::uint64_t take_turn() { return turns_++; }
  bool is_turn(std::uint64_t turn) const { return turn == current_; }
  void end_turn() { ++current_; }

  // Whoever has the turn may use as much from when the stream that packs comes there until it says
  // when that ends. kMemory: there is not so much.
  Status take_room(std::size_t bytes, std::byte** memory);
  void give_back_room(runtime::MomentPtr end) { last_->free = std::move(end); }
  // The same of a window, which all members take at the same turn and for as many bytes: NCCL has
  // faster ways where all of them have what it reduces there, each decides on them alone, and they
  // must do so alike.
  bool has_windows() const { return has_windows_; }
  // True: the next one is smaller than that, and begin_window() is to make it anew.
  bool needs_window(std::size_t bytes) const { return windows_[after(window_)].bytes < bytes; }
  Status begin_window(std::size_t bytes);
  Status take_window(std::byte** memory);
  // What is launched now begins on the GPU after what was launched before, of any set.
  Status keep_order();
  // A sum whose addends are multiplied before; of whoever has the turn, for its launch.
  Status scaled_sum(runtime::ElementType type, double factor, int* reduction);
  // An error of NCCL's in what the GPU was given.
  Status watch();
  // Begins to end what runs on the GPU. Nothing else is asked of the lane any more.
  void abort() { communicator_->abort(); }
  bool has_let_go() const { return communicator_->has_let_go(); }

 private:
  struct Room {
    runtime::MemoryPtr memory;
    std::size_t bytes = 0;
    runtime::MomentPtr free;  // nullptr: nobody has used it
  };
  using Rooms = std::array<Room, 2>;
  static std::size_t after(std::size_t last) { return (last + 1) % std::tuple_size_v<Rooms>; }
  // The next one, from when nobody uses it.
  Status take(Rooms& rooms, std::size_t* number, std::byte** memory);

  std::unique_ptr<Communicator> communicator_;
  const std::shared_ptr<runtime::Accelerator> accelerator_;
  const std::shared_ptr<const cuda::Kernels> kernels_;
  LaneStreams streams_;
  const bool has_windows_;
  std::uint64_t turns_ = 0, current_ = 0;
  Rooms rooms_, windows_;
  std::size_t room_ = 0, window_ = 0;  // the last one that was taken of each
  Room* last_ = nullptr;               // of both
  struct ScaledSum {
    runtime::ElementType type;
    double factor;
    int reduction;
  };
  std::vector<ScaledSum> scaled_sums_;  // the last used one is the first
};

}  // namespace hv::nccl
