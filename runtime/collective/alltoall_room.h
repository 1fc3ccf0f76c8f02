// What an alltoall's receiver does once it has learnt how many rows come from each rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/collective/collective.h"

namespace hv::runtime {

// kSystem: a rank sends more than it has at all: its memory is broken, and this rank's must not be.
Status check_received(const CollectiveRequest& request, const std::vector<std::int64_t>& received);

// Checks that, too, and has the request make room; kMemory: there is none.
Status make_alltoall_room(const CollectiveRequest& request,
                          const std::vector<std::int64_t>& received, std::byte** room);

}  // namespace hv::runtime
