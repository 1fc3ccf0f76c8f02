// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/ends.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/signal_block.h"

namespace hv::nccl {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};

// kInProgress: the GPU is at it still.
Status look_at(const Leftovers& left) {
  for (const runtime::MomentPtr& moment : left.moments)
    if (Status status = left.accelerator->poll(*moment); !status.ok()) return status;
  return Status::success();
}

// An error is of a peer that has died, or of the device: the GPU may never come there.
Status await_gpu(const Leftovers& left) {
  for (;;) {
    Status status = look_at(left);
    if (status.code != StatusCode::kInProgress) return status;
    status = left.communicator->poll("carry out what the GPU was given");
    if (!status.ok() && status.code != StatusCode::kInProgress) return status;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void keep_memory(const Leftovers& left) {
  for (const runtime::MemoryPtr& memory : left.memory)
    for (const runtime::MomentPtr& moment : left.moments)
      left.accelerator->keep_until(moment, memory);
}

}  // namespace

Ends& Ends::of_process() {
  static Ends* const ends = new Ends;
  return *ends;
}

void Ends::take(Leftovers left) {
  {
    const std::lock_guard lock(mutex_);
    ++going_on_;
  }
  const SignalBlock block;
  auto* const kept = new Leftovers(std::move(left));
  try {
    std::thread([this, kept] {
      end(std::move(*kept));
      delete kept;
    }).detach();
  } catch (const std::system_error&) {  // no thread is to be had: all of it stays
    const std::lock_guard lock(mutex_);
    --going_on_;
  }
}

void Ends::end(Leftovers left) {
  if (!left.communicator->is_given_up()) {
    if (await_gpu(left).ok())
      left.communicator->end();
    else
      left.communicator->abort();
  }
  keep_memory(left);
  left = {};
  const std::lock_guard lock(mutex_);
  --going_on_;
  changed_.notify_all();
}

bool Ends::await(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return going_on_ == 0; });
}

}  // namespace hv::nccl
