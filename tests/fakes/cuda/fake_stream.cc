// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/fake_stream.h"

#include <thread>
#include <utility>

#include "src/base/signal_block.h"
#include "tests/fakes/cuda/faults.h"

namespace hv::fake {

std::uint64_t FakeEvent::record() {
  const std::lock_guard lock(mutex_);
  pending_.insert(++recorded_);
  return recorded_;
}

void FakeEvent::mark(std::uint64_t record) {
  const std::lock_guard lock(mutex_);
  pending_.erase(record);
  passed_.notify_all();
}

std::uint64_t FakeEvent::latest() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

bool FakeEvent::has_passed(std::uint64_t record) const {
  const std::lock_guard lock(mutex_);
  return pending_.count(record) == 0;
}

void FakeEvent::await(std::uint64_t record) {
  std::unique_lock lock(mutex_);
  passed_.wait(lock, [&] { return pending_.count(record) == 0; });
}

// As the driver's threads it takes no signal of the program's.
std::shared_ptr<FakeStream> FakeStream::start(int device) {
  std::shared_ptr<FakeStream> stream(new FakeStream(device));
  const SignalBlock block;
  std::thread([stream] { stream->run(); }).detach();
  return stream;
}

void FakeStream::put(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_all();
}

void FakeStream::hang() {
  put([] {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));  // sleep-ok: it hangs
  });
}

void FakeStream::record(const std::shared_ptr<FakeEvent>& event) {
  put([event, record = event->record()] { event->mark(record); });
}

void FakeStream::wait_for(const std::shared_ptr<FakeEvent>& event) {
  put([event, record = event->latest()] { event->await(record); });
}

bool FakeStream::is_idle() const {
  const std::lock_guard lock(mutex_);
  return work_.empty() && !is_busy_;
}

void FakeStream::await_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !is_busy_; });
}

void FakeStream::end() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  changed_.notify_all();
}

int FakeStream::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void FakeStream::fail(int result) {
  const std::lock_guard lock(mutex_);
  if (failure_ == 0) ++failures_, failure_ = result;
}

void FakeStream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !work_.empty() || is_ending_; });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    is_busy_ = true;
    lock.unlock();
    std::this_thread::sleep_for(Faults::of_process().next_delay());  // sleep-ok: it is the delay
    work();
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace hv::fake
