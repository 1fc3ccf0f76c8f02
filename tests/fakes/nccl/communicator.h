// A communicator of the stand-in for NCCL: its meeting, the work that it has put on streams, and
// its end.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call, as with NCCL one at a time but for async_error() and stop(). A thread of its
// own does what goes on after a call: meeting, launching later, registering windows, finalizing.
// What calls return are numbers of ncclResult_t.
//
// Work on a communicator has the order of its calls, on whatever streams: each takes a number, and
// is done when all before it are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/nccl/meeting.h"
#include "tests/fakes/nccl/operation.h"

namespace hv::fake {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // How its ranks find each other: sets the id and returns kSuccess, or why not; ends at its sign.
  using FindId = std::function<int(nccl::UniqueId* id, const StopSign& stop)>;

  Communicator(const Member& self, bool is_blocking);
  // hangs: it never meets anyone.
  void start(FindId find_id, bool hangs);

  int rank() const { return self_.rank; }
  int ranks() const { return self_.ranks; }
  const Member& self() const { return self_; }
  bool is_blocking() const { return is_blocking_; }
  // Blocks while something goes on that calls do not wait for, and returns what came of it.
  int await_idle();
  int async_error();
  // Before 2.27 the group of its last call lies in a thread's own memory until the next call.
  void open_group() { has_open_group_ = true; }
  bool has_open_group() const { return has_open_group_; }
  std::string last_error();
  int check_ready();                             // for a call that needs it idle and whole
  int check_launchable();                        // and neither finalized nor revoked
  int fail(int result, const std::string& why);  // returns the result

  // The operations of a group, at its end; kInProgress: they will be put on their streams later.
  int launch(std::vector<Operation> operations);
  int make_reduction(const Reduction& reduction, int type);
  // False: there is no such one for that type.
  bool find_reduction(int number, int type, Reduction* reduction) const;
  int destroy_reduction(int number);
  // All ranks call it; done() runs when they have.
  // What it is asked next never begins, until it is aborted.
  void hang();
  int meet_all(Call call, std::uint64_t bytes, std::function<void()> done);
  int finalize();
  int revoke();
  // Of a rank that stays, after all who stay have called: an id for them.
  int agree_on_id(const std::vector<int>& staying, nccl::UniqueId* id, const StopSign& stop);

  // Ends all that goes on and all that comes; returns when nothing of it runs any more.
  void stop();
  // Waits for all that was put on streams, then leaves; for one that is ready.
  void leave();

 private:
  class Work;
  void run();  // the thread's
  int post(std::function<int()> task);
  int await_turn_and_perform(const Work& work);
  int error_of(int result, const std::string& why);
  void wait_for_work(std::unique_lock<std::mutex>& lock);

  const Member self_;
  const bool is_blocking_;
  StopSign stop_;       // all ends
  StopSign work_stop_;  // work on streams ends
  Party party_;         // the thread's until the meeting is over
  std::thread thread_;
  std::atomic<bool> has_open_group_{false};

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<int()>> tasks_;
  bool is_busy_ = false;  // the thread has one, or tasks_ has
  bool is_leaving_ = false;
  bool has_met_ = false;
  bool is_finalized_ = false;
  int error_ = 0;
  std::string last_error_;
  std::uint64_t launched_ = 0;  // works that have a number
  std::uint64_t done_ = 0;      // of these
  int performing_ = 0;
  std::map<int, std::pair<Reduction, int>> reductions_;  // and its type
};

}  // namespace hv::fake
