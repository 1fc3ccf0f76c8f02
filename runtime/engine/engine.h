// Engine: one rank's runtime as a step that never blocks. Who runs it is driver.h's affair.
// SPDX-License-Identifier: Apache-2.0
//
// step() takes what callers have enqueued and what peers have sent, lets the negotiation conclude,
// sends, starts what was decided and advances what runs. Everything but enqueue() belongs to the
// one thread that holds the progress right; enqueue(), the requests and the questions may be called
// by any.
//
//   kOpen ──(this rank or a peer has left, and what was started has ended)──► kClosed
//     └──(a peer is lost, a collective or a message breaks, memory is short)──► kFailing
//   kFailing ──(devices have let go of callers' memory, or had time for it)──► kFailed
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/engine/execution/pair_transfers.h"
#include "runtime/engine/launch_order.h"
#include "runtime/engine/process_sets.h"
#include "runtime/transport/fabric.h"
#include "src/base/running_time.h"

namespace hv::runtime {

class Engine {
 public:
  // fabric, and what all's backends are, outlive the engine. all: for set 0; make: for others.
  Engine(const EngineConfig& config, Fabric& fabric, SetParts all, SetMaker make = nullptr);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread. The operation completes later; is_done tells.
  Status enqueue(OperationPtr operation);
  // Any thread. A caller wants this one done. True: whoever drives should look at that now.
  bool await(const Operation& operation);
  // Any thread.
  std::vector<ProcessSet> process_sets() const { return sets_.list(); }

  struct Step {
    bool has_progressed = false;  // something moved: worth another step at once
    bool has_completed = false;   // some operation is done now
  };
  // An exception inside ends here: the engine fails (kMemory, kSystem), and the peers are told.
  Step step(TimePoint time);
  // When step() should be called although no bell has rung; never once it is finished.
  TimePoint next_look() const;
  // What is under way needs so much of it.
  Attention attention() const { return std::max(sets_.attention(), pairs_.attention()); }
  // Something is in flight here that needs driving.
  bool has_work() const { return sets_.has_work(); }

  // This rank wants to shut down: what has not been started completes with kShutdown, here and on
  // the peers.
  void request_leave() { is_leave_requested_ = true; }
  // It cannot wait for the peers' part in that any longer.
  void request_abort() { is_abort_requested_ = true; }
  // Nothing runs any more and nothing will.
  bool is_finished() const { return state_ == State::kClosed || has_failed(); }
  bool has_failed() const { return state_ == State::kFailed; }
  // It is finished, and what its peers are to have still lies here: step() moves it on.
  bool is_flushing() const { return is_flushing_; }
  // Of a finished engine: the fabric is the caller's from here on.
  void hand_over_fabric() { is_flushing_ = false; }

 private:
  // Looks come every second: a longer time is a stop, in which nothing has stalled.
  static constexpr Duration kMostTimeAtOnce = std::chrono::seconds(5);
  enum class State { kOpen, kClosed, kFailing, kFailed };

  Step take_step(TimePoint clock_time);
  void end_as(State state);
  void flush();

  // The fabric's health, and what was requested. True: the engine has failed.
  bool is_ended_from_outside();
  bool take_messages(TimePoint time);
  Status deliver(int from, std::string_view message, TimePoint time);
  Status deliver_pair(int from, std::string_view message);
  bool end_by_stall(const std::string& words);
  void take_submissions(TimePoint time, Step* result);
  Status advance_pairs(TimePoint time, Step* result);
  void complete_pairs(Step* result);
  void warn_of_pairs(TimePoint time);
  bool send_messages();
  // Ends everything here, once devices have let go of callers' memory or after a while, and tells
  // the peers, as far as memory allows. Throws nothing.
  void fail(const Status& reason);
  Step go_on_failing();
  void fail_by_exception(StatusCode code, const char* what);
  void tell_peers(const Status& reason);

  Fabric& fabric_;
  const int rank_;
  const ObservationPtr observation_;
  ProcessSets sets_;
  LaunchOrder launches_;
  PairTransfers pairs_;
  RunningTime running_time_{kMostTimeAtOnce};  // what the parts take for time
  std::atomic<std::uint64_t> waits_{0};        // of all callers so far
  std::uint64_t seen_waits_ = 0;
  std::atomic<bool> is_holding_{false};  // something back, as Negotiation::await says
  LastEnqueued last_enqueued_;
  std::atomic<State> state_{State::kOpen};
  std::atomic<bool> is_flushing_{false};
  std::atomic<bool> is_leave_requested_{false};
  std::atomic<bool> is_abort_requested_{false};
  Status failure_;       // from kFailing on
  TimePoint let_go_by_;  // then, too
  Status end_reason_;    // a neighbour has told its failure, or a message could not be sent
};

}  // namespace hv::runtime
