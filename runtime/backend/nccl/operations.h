// The collectives that NCCL carries out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/backend/backend.h"
#include "runtime/backend/nccl/lane.h"

namespace hv::nccl {

// Alike on all members, as what it asks is.
bool supports_operation(const runtime::CollectiveRequest& request);

// host: tells ranks on the host what they need to know before; it outlives the collective.
std::unique_ptr<runtime::Collective> start_operation(std::shared_ptr<Lane> lane,
                                                     runtime::CollectiveRequest request,
                                                     runtime::Backend& host);

}  // namespace hv::nccl
