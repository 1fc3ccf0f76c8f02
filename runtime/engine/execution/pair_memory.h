// What the bytes of a send or receive are read from and written to on the host: the tensor's own
// memory, or pinned memory that stands in for a GPU's.
// SPDX-License-Identifier: Apache-2.0
//
// Bytes between two ranks go through the host whatever memory the tensors are of, so that the two
// need not be of the same. Nothing blocks, and nothing is given to a device's work stream that
// would wait there for a caller's and hold up what stands behind it.
#pragma once

#include <cstddef>

#include "runtime/engine/operation.h"
#include "src/base/status.h"

namespace hv::runtime {

class PairMemory {
 public:
  // A sender's, once it has been brought to the host.
  static Status of_input(const Operation& operation, PairMemory* made);
  // A receiver's; the result is to have its room.
  static Status of_result(const Operation& operation, PairMemory* made);

  // kInProgress: the tensor is not on the host yet; it is copied when the caller's stream is
  // through with it.
  Status bring(const Operation& operation);
  const std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }
  const MemoryPtr& pinned() const { return pinned_; }
  // All has been written to output(). ended: when the operation's own memory has it; nullptr: now.
  // kInProgress: not yet, for the caller's stream may still write there.
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
