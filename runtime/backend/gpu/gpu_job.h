// GpuJob: what all sets of one job share on GPUs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>

#include "runtime/device/accelerator.h"

namespace hv::runtime {

struct GpuJob {
  // It ends by an error: for what outlives a set's backends. Any thread may read it.
  std::atomic<bool> has_failed{false};

  // Where the collective begins that was launched last, by device. Of whoever holds the engine's
  // progress lock.
  std::map<int, MomentPtr> last_starts{};
};

}  // namespace hv::runtime
