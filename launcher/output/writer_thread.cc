// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/writer_thread.h"

#include <csignal>
#include <utility>

namespace hv::launcher {

WriterThread::WriterThread(std::function<void()> body) {
  std::promise<void> ended;
  ended_ = ended.get_future();
  // A thread inherits the mask: blocking around its creation leaves no moment in which it could be
  // hit.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([run = std::move(body), done = std::move(ended)]() mutable {
    run();
    run = nullptr;  // lets go of what it shares before anybody can know that it has ended
    done.set_value();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WriterThread::~WriterThread() {
  if (thread_.joinable()) thread_.detach();
}

bool WriterThread::join(std::optional<TimePoint> limit) {
  if (!thread_.joinable()) return true;
  if (limit && ended_.wait_until(*limit) != std::future_status::ready) return false;
  thread_.join();
  return true;
}

}  // namespace hv::launcher
