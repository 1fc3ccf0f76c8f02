// One call of a collective, or a send or receive, and what it does when its stream comes to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/cuda/driver_abi.h"
#include "tests/fakes/nccl/lanes.h"
#include "tests/fakes/nccl/reduction.h"

namespace hv::fake {

struct Operation {
  Call call = Call::kAllReduce;
  const void* from = nullptr;  // nullptr and kSendReceive: it receives
  void* to = nullptr;          // nullptr and kSendReceive: it sends
  std::size_t count = 0;
  int type = 0;
  Reduction reduction;
  int peer = 0;  // or the root
  cuda::Stream stream = nullptr;
  std::uint64_t place = 0;  // in a window: see window_place()
  bool hangs = false;       // until the communicator is aborted
};

// Those of one group: its collectives one after another, then all sends and receives together.
// False: the sign was set meanwhile, and what the memory holds is anything.
bool perform(const std::vector<Operation>& operations, Lanes& lanes, const StopSign& stop);

// Every rank comes there, for as many bytes: returns when all have. False: the sign was set.
bool meet(Call call, std::uint64_t bytes, Lanes& lanes, const StopSign& stop);

}  // namespace hv::fake
