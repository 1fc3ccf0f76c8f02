// The GPUs of this process as kernels of NCCL's have them: one at a time, in the order in which
// they were launched, whatever their communicators and streams.
// SPDX-License-Identifier: Apache-2.0
//
// A real GPU has room for some beside each other; programs that rely on that hang on a fuller one.
// With HVRUN_FAKE_NCCL_ROOM=1 there is room for all.
//
// Any thread may call.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "tests/fakes/nccl/sockets.h"

namespace hv::fake {

class GpuTurns {
 public:
  static GpuTurns& of_process();

  std::uint64_t take(int device);
  // Blocks until it is first there, or the sign is set: call wake() then.
  void await(int device, std::uint64_t turn, const StopSign& stop);
  void end(int device, std::uint64_t turn);
  void wake();

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::map<int, std::set<std::uint64_t>> open_;  // by device
};

}  // namespace hv::fake
