// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/allocation.h"

#include <utility>

namespace hv::nccl {

Status Allocation::begin_window(bool* has_begun) {
  if (!lane().has_windows()) return Status::success();
  *has_begun = true;
  return lane().communicator().begin_window(request().segments.front().output_bytes, &memory_);
}

Status Allocation::launch() {
  if (memory_ != nullptr) request().give_memory(std::move(memory_));
  return Status::success();
}

}  // namespace hv::nccl
