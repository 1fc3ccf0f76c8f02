// A thread of MPI's own: what it is given it does in that order.
// SPDX-License-Identifier: Apache-2.0
//
// It never ends: MPI must be ended by the thread that has begun it. Any thread may call.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace hv::mpi {

class MpiThread {
 public:
  MpiThread();
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  void post(std::function<void()> work);
  // Returns when it is done.
  void run(const std::function<void()>& work);

 private:
  [[noreturn]] void serve();

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
};

}  // namespace hv::mpi
