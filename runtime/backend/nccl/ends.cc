// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/ends.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "src/base/signal_block.h"

namespace hv::nccl {
namespace {

constexpr std::chrono::milliseconds kPollInterval{1};
constexpr std::chrono::seconds kGivenUpWithin{3};

// kInProgress: the GPU is at it still.
Status look_at(const Leftovers& left) {
  for (const runtime::MomentPtr& moment : left.moments)
    if (Status status = left.accelerator->poll(*moment); !status.ok()) return status;
  return Status::success();
}

// An error is of a peer that has died, or of the device: the GPU may never come there. NCCL does
// not see every death: once the job has failed, what is on its way has a while still.
Status await_gpu(const Leftovers& left) {
  TimePoint limit = TimePoint::max();
  for (;;) {
    Status status = look_at(left);
    if (status.code != StatusCode::kInProgress) return status;
    if (left.communicator->has_job_failed()) limit = std::min(limit, now() + kGivenUpWithin);
    if (now() >= limit) return {StatusCode::kPeerLost, "the job has failed"};
    status = left.communicator->poll("carry out what the GPU was given");
    if (!status.ok() && status.code != StatusCode::kInProgress) return status;
    std::this_thread::sleep_for(kPollInterval);
  }
}

// What is given up comes to an end soon, but where a caller's stream is busy before it: that
// memory is looked at again and again then, as all that is kept.
void give_back_memory(Leftovers left) {
  const TimePoint limit = now() + kGivenUpWithin;
  Status passed = look_at(left);
  while (passed.code == StatusCode::kInProgress && now() < limit) {
    std::this_thread::sleep_for(kPollInterval);
    passed = look_at(left);
  }
  for (runtime::MemoryPtr& memory : left.memory) {
    if (passed.ok()) {
      cuda::Device::let_go(std::move(memory));
      continue;
    }
    for (const runtime::MomentPtr& moment : left.moments)
      left.accelerator->keep_until(moment, memory);
  }
}

}  // namespace

Ends& Ends::of_process() {
  static Ends* const ends = new Ends;
  return *ends;
}

void Ends::run(Beginnings* running, std::function<void()> work) {
  const TimePoint begun = now();
  {
    const std::lock_guard lock(mutex_);
    running->insert(begun);
  }
  const auto over = [this, running, begun] {
    const std::lock_guard lock(mutex_);
    running->erase(running->find(begun));
    changed_.notify_all();
  };
  // Stays where there is no thread to be had: somebody may use still what it has.
  auto* const kept = new std::function<void()>(std::move(work));
  const SignalBlock block;
  try {
    std::thread([over, kept] {
      (*kept)();
      delete kept;  // before it counts as over
      over();
    }).detach();
  } catch (const std::exception&) {
    over();
  }
}

void Ends::take(Leftovers left) {
  run(&going_on_,
      [this, kept = std::make_shared<Leftovers>(std::move(left))] { end(std::move(*kept)); });
}

void Ends::give_up(std::function<void()> work) { run(&giving_up_, std::move(work)); }

void Ends::end(Leftovers left) {
  if (!left.communicator->is_given_up()) {
    if (await_gpu(left).ok())
      left.communicator->end();
    else
      left.communicator->abort();
  }
  if (!left.communicator->has_let_go(kGivenUpWithin)) {
    const std::lock_guard lock(mutex_);
    stuck_.push_back(std::move(left));
    return;
  }
  give_back_memory(std::move(left));
}

// What hangs in NCCL is not waited for again with every later end.
bool Ends::await(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  const bool have_ended = changed_.wait_until(lock, deadline, [this] { return going_on_.empty(); });
  while (!giving_up_.empty()) {
    const TimePoint limit = std::min(deadline, *giving_up_.rbegin() + kGivenUpWithin);
    if (now() >= limit) break;
    changed_.wait_until(lock, limit);
  }
  return have_ended;
}

}  // namespace hv::nccl
