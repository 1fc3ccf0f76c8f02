// MPI in this process: begun once, by the program or here, and ended at the process's end.
// SPDX-License-Identifier: Apache-2.0
//
// Where it is MPI_THREAD_MULTIPLE whoever is here calls MPI; else one thread does for all.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "runtime/backend/mpi/mpi_thread.h"
#include "src/base/status.h"

namespace hv::mpi {

class MpiProcess {
 public:
  static MpiProcess& of_process();  // never destroyed

  // The first call begins it, unless the program has, or MPI would not find the others (not
  // is_wired). kUnsupported with words: it cannot be used here.
  Status begin(bool is_wired);
  bool has_all_threads() const { return level_ == MPI_THREAD_MULTIPLE; }
  std::string library() const;  // "Open MPI v4.1.4"

  // Calls of MPI, by whom it may be.
  void within(const std::function<void()>& calls);
  // The same that may wait for other ranks; it returns at once, and what is posted is done in
  // order.
  void post(std::function<void()> calls) { thread_.post(std::move(calls)); }
  // Until what has been posted is done; not where MPI is given up.
  void settle();
  // Frees it, unless MPI is given up or has ended; where posted.
  void free(MPI_Comm communicator);

  // A rank has been lost, or MPI has ended: it is not called any more, not even to end it.
  void give_up() { is_given_up_ = true; }
  bool is_given_up() const { return is_given_up_; }
  // Those of process sets: while there are some this rank has not left its job.
  void count_communicators(int more) { communicators_ += more; }

 private:
  MpiProcess() = default;
  Status begin_here(bool is_wired);
  void end();

  MpiThread thread_;
  std::once_flag once_;
  Status begun_;
  int level_ = MPI_THREAD_SINGLE;
  std::atomic<bool> is_given_up_{false};
  std::atomic<int> communicators_{0};
};

// kSystem with MPI's words, unless it went well.
Status check(int result, const char* doing);

}  // namespace hv::mpi
