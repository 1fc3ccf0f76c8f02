// Memory that all members have as a window, for tensors that are to be reduced as they lie.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/backend/nccl/nccl_collective.h"

namespace hv::nccl {

// Gives none where there are no windows.
class Allocation : public NcclCollective {
 public:
  using NcclCollective::NcclCollective;

 protected:
  const char* what() const override { return "allocation"; }
  Status begin_window(bool* has_begun) override;
  Status launch() override;

 private:
  runtime::MemoryPtr memory_;
};

}  // namespace hv::nccl
