// The collectives that NCCL carries out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/backend/gpu/gpu_plugin.h"
#include "runtime/backend/nccl/lane.h"
#include "runtime/backend/nccl/nccl_collective.h"

namespace hv::nccl {

// By what all members have told each other, so that they choose alike.
bool can_reduce_float8(const std::vector<runtime::GpuFacts>& facts);

// reduces_float8: this NCCL computes with 8-bit floats, on the GPUs of all members. Alike on all of
// them, as what it asks is.
bool supports_operation(const runtime::CollectiveRequest& request, bool reduces_float8);

// host: tells ranks on the host what they need to know before; it outlives the collective.
std::unique_ptr<runtime::Collective> start_operation(std::shared_ptr<Lane> lane,
                                                     runtime::CollectiveRequest request,
                                                     runtime::Backend& host);

// Memory that all members have as a window, for tensors that are to be reduced as they lie.
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
