// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/gpu_turns.h"

#include <cstdlib>

namespace hv::fake {

// Never destroyed: streams outlive main().
GpuTurns& GpuTurns::of_process() {
  static GpuTurns* const turns = new GpuTurns;
  return *turns;
}

std::uint64_t GpuTurns::take(int device) {
  const std::lock_guard lock(mutex_);
  open_[device].insert(next_);
  return next_++;
}

void GpuTurns::await(int device, std::uint64_t turn, const StopSign& stop) {
  static const bool has_room = std::getenv("HVRUN_FAKE_NCCL_ROOM") != nullptr;
  if (has_room) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return *open_[device].begin() == turn || stop.is_set(); });
}

void GpuTurns::end(int device, std::uint64_t turn) {
  const std::lock_guard lock(mutex_);
  open_[device].erase(turn);
  changed_.notify_all();
}

void GpuTurns::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace hv::fake
