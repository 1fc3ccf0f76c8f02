// MPI in this process: begun once, by the program or here, and ended at the process's end.
// SPDX-License-Identifier: Apache-2.0
//
// Where it is MPI_THREAD_MULTIPLE whoever is here calls MPI; else one thread does for all.
#pragma once

#include <mpi.h>
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/status.h"

namespace hv::mpi {

// A thread of MPI's own: what it is given it does in that order. It never ends, for MPI must be
// ended by the thread that has begun it. Any thread may call.
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

class MpiProcess {
 public:
  static MpiProcess& of_process();  // never destroyed

  // kUnsupported with words: it cannot be used here, now. is_wired: as MpiPlugin::inspect has it.
  Status obstacle(bool is_wired) const;
  // Begins it, unless the program has; obstacle() comes first. All below come after it.
  Status begin();
  bool has_all_threads() const { return level_ == MPI_THREAD_MULTIPLE; }

  // Calls of MPI, by whom it may be. They wait for what is posted where one thread does all.
  void within(const std::function<void()>& calls);
  bool has_to_wait() { return !has_all_threads() && !thread_->is_idle(); }
  // Calls that may wait for other ranks; it returns at once, and what is posted is done in order.
  void post(std::function<void()> calls) { thread_->post(std::move(calls)); }
  // Until what has been posted is done, or MPI is given up.
  void settle();
  // Frees it, unless MPI is given up or has ended; where posted.
  void free(MPI_Comm communicator);

  // A rank has been lost, or MPI has ended: it is not called any more, not even to end it.
  void give_up();
  bool is_given_up() const { return is_given_up_; }
  // Those of process sets: while there are some this rank has not left its job.
  void count_communicators(int more) { communicators_ += more; }

 private:
  MpiProcess() = default;
  Status begin_here();
  void end();

  std::mutex mutex_;                   // of begin()
  std::unique_ptr<MpiThread> thread_;  // from begin() on
  Status begun_;
  int level_ = MPI_THREAD_SINGLE;
  std::atomic<pid_t> begun_by_{0};  // the process; a child that it forks has no part of MPI
  std::atomic<bool> is_given_up_{false};
  std::atomic<int> communicators_{0};
};

// "Open MPI v4.1.4", "MPICH 4.0.2": whether MPI has begun or not.
std::string library_text();

// kSystem with MPI's words, unless it went well.
Status check(int result, const char* doing);

}  // namespace hv::mpi
