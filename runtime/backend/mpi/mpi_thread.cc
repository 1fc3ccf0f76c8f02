// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_thread.h"

#include <algorithm>
#include <exception>
#include <future>
#include <memory>
#include <utility>

#include "src/base/signal_block.h"

namespace hv::mpi {

MpiThread::MpiThread() {
  const SignalBlock block;
  std::thread thread([this] { serve(); });
  id_ = thread.get_id();
  thread.detach();
}

void MpiThread::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  ++posted_;
  if (is_own()) posted_by_work_ = posted_;
  changed_.notify_one();
}

void MpiThread::run(const std::function<void()>& work) {
  std::promise<void> done;
  std::future<void> outcome = done.get_future();
  post([&work, promise = std::make_shared<std::promise<void>>(std::move(done))] {
    try {
      work();
      promise->set_value();
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  outcome.get();
}

void MpiThread::drain(const std::function<bool()>& is_enough) {
  std::unique_lock lock(mutex_);
  const std::uint64_t all = posted_;
  ended_.wait(lock, [&] { return done_ >= std::max(all, posted_by_work_) || is_enough(); });
}

void MpiThread::wake() {
  const std::lock_guard lock(mutex_);
  ended_.notify_all();
}

bool MpiThread::is_idle() {
  const std::lock_guard lock(mutex_);
  return done_ == posted_;
}

void MpiThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !work_.empty(); });
    std::function<void()> next = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // what it held may post more, as it goes
    lock.lock();
    ++done_;
    ended_.notify_all();
  }
}

}  // namespace hv::mpi
