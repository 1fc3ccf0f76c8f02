// What the bytes of a send or receive are read from and written to on the host: the tensor's own
// memory, or pinned memory that stands in for a GPU's.
// SPDX-License-Identifier: Apache-2.0
//
// Bytes between two ranks go through the host whatever memory the tensors are of, so that the two
// need not be of the same. Nothing blocks.
#pragma once

#include <cstddef>

#include "runtime/engine/operation.h"
#include "src/base/status.h"

namespace hv::runtime {

class PairMemory {
 public:
  // A sender's, from the moment on that is_ready(): it takes the tensor to the host once the
  // caller's stream is through with it.
  static Status of_input(const Operation& operation, PairMemory* made);
  // A receiver's; the result is to have its room.
  static Status of_result(const Operation& operation, PairMemory* made);

  // kInProgress: not yet.
  Status is_ready() const;
  const std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }
  // All has been written to output(). ended: when the operation's own memory has it; nullptr: now.
  Status hand_over(const Operation& operation, MomentPtr* ended) const;
  // The operation is given up: what a device still writes goes back when that is done.
  void give_up() noexcept;

 private:
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  MemoryPtr pinned_;  // nullptr: the tensor's own memory serves
  MomentPtr copied_;  // of a sender's
  std::shared_ptr<Accelerator> accelerator_;
};

}  // namespace hv::runtime
