// Driver: decides which thread runs the engine's step. Whoever waits, drives.
// SPDX-License-Identifier: Apache-2.0
//
// One thread at a time holds the seat. A waiting caller takes it and steps until its own operation
// is done; further waiters sleep until the seat is free or their operation done. The engine thread
// takes the seat only while nobody waits, and never sleeps on it. So an enqueue followed by its
// wait costs no thread switch.
//
// The engine thread's two places to sleep:
//   at the bell   nobody has waited of late: any ring, from a peer or a caller, wakes it
//   parked        callers wait again and again: it looks up after 1 ms, so that a ring is not
//                 answered by two threads; while one waits for long it looks up less often, and is
//                 called when that one leaves work in flight behind.
// So what a caller enqueues right after a wait, and then does not wait for, starts up to 1 ms late.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/collective/patience.h"
#include "runtime/engine/engine.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

class Driver {
 public:
  // Both outlive the driver. The thread starts at once and blocks all signals.
  Driver(Engine& engine, Doorbell& doorbell, const PatienceConfig& patience);
  // Stops the engine thread; no caller may be inside any more.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Runs the engine in this thread, or waits while another one does, until done or deadline;
  // returns done.
  bool wait(const std::atomic<bool>& done, TimePoint deadline);
  // Until the engine is finished: after its request_leave(). True: it is, and nobody touches the
  // fabric any more.
  bool wait_until_finished(TimePoint deadline);
  // There is new work and its caller does not wait for it.
  void wake();

 private:
  // Their ends give back the seat and count the caller out, however the driving ends.
  class Seat;
  class Visit;

  // done: what this thread waits for; true once the seat is ours, false when done or past the
  // deadline.
  bool take_seat(const std::atomic<bool>& done, TimePoint deadline);
  void release_seat();
  void tell_waiters();
  template <class Done>
  void drive(Done done, TimePoint deadline);
  void leave();

  void run();
  bool has_caller() const { return callers_.load() > 0; }
  void serve();
  bool yield_to_launch() const;
  TimePoint step_while_unvisited(std::uint32_t* seen);
  void park(Duration limit);
  void park_until_called();

  Engine& engine_;
  Doorbell& doorbell_;
  Patience patience_;          // of whoever has the seat and waits
  Patience serving_patience_;  // of the driver's own thread

  std::atomic<bool> is_seat_taken_{false};
  std::atomic<int> seat_waiters_{0};
  std::mutex seat_mutex_;  // only for sleeping on seat_changed_
  std::condition_variable seat_changed_;

  std::atomic<int> callers_{0};           // inside wait()
  std::atomic<std::uint32_t> visits_{0};  // callers that have left
  std::atomic<bool> is_stopping_{false};

  std::mutex park_mutex_;  // guards is_called_
  std::condition_variable park_changed_;
  std::atomic<bool> is_parked_for_long_{false};
  bool is_called_ = false;

  std::thread thread_;  // last: starts when everything else stands
};

}  // namespace hv::runtime
