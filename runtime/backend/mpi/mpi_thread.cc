// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_thread.h"

#include <future>
#include <thread>
#include <utility>

#include "src/base/signal_block.h"

namespace hv::mpi {

MpiThread::MpiThread() {
  const SignalBlock block;
  std::thread([this] { serve(); }).detach();
}

void MpiThread::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_one();
}

void MpiThread::run(const std::function<void()>& work) {
  std::promise<void> done;
  post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
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
  }
}

}  // namespace hv::mpi
