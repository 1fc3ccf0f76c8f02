// A thread of MPI's own: what it is given it does in that order.
// SPDX-License-Identifier: Apache-2.0
//
// It never ends: MPI must be ended by the thread that has begun it. Any thread may call.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hv::mpi {

class MpiThread {
 public:
  MpiThread();
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  void post(std::function<void()> work);
  // Returns when it is done, or throws what that has thrown.
  void run(const std::function<void()>& work);
  // Until what has been posted by now is done, and what that posts as it goes, or is_enough(),
  // which wake() has looked at, holds.
  void drain(const std::function<bool()>& is_enough);
  void wake();
  // Nothing is left to do: what is run begins at once.
  bool is_idle();
  // The caller is this thread.
  bool is_own() const { return std::this_thread::get_id() == id_; }

 private:
  [[noreturn]] void serve();

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> work_;
  std::uint64_t posted_ = 0, done_ = 0;
  std::uint64_t posted_by_work_ = 0;  // the number of the last that work itself has posted
  std::thread::id id_;
};

}  // namespace hv::mpi
