// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/call_thread.h"

#include <utility>

#include "src/base/signal_block.h"

namespace hv::nccl {

CallThread::CallThread() {
  const SignalBlock block;
  thread_ = std::thread([this] { serve(); });
}

CallThread::~CallThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CallThread::run(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  changed_.notify_all();
  changed_.wait(lock, [this] { return work_ == nullptr; });
  if (const std::exception_ptr thrown = std::exchange(thrown_, nullptr))
    std::rethrow_exception(thrown);
}

void CallThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return work_ != nullptr || is_ending_; });
    if (work_ == nullptr) return;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      (*work_)();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    thrown_ = thrown;
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace hv::nccl
