// Engine: one rank's runtime as a step that never blocks. Who runs it is driver.h's affair.
// SPDX-License-Identifier: Apache-2.0
//
// step() takes what callers have enqueued and what peers have sent, lets the negotiation conclude,
// sends, starts what was decided and advances what runs. Everything but enqueue() belongs to the
// one thread that holds the progress right; enqueue(), the requests and the questions may be called
// by any.
//
//   kOpen ──(this rank or a peer leaves)──► kClosing ──(what was started has ended)──► kClosed
//     └───────(a peer is lost, a collective or a message breaks, memory is short)─────► kFailed
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/engine/execution.h"
#include "runtime/engine/negotiation.h"
#include "runtime/engine/tensor_queue.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

struct EngineConfig {
  NegotiationConfig negotiation;
  bool deterministic = false;
};

class Engine {
 public:
  // fabric and backends outlive the engine.
  Engine(const EngineConfig& config, Fabric& fabric, std::vector<Backend*> backends);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread. The operation completes later; is_done tells.
  Status enqueue(OperationPtr operation) { return queue_.add(std::move(operation)); }

  struct Step {
    bool has_progressed = false;  // something moved: worth another step at once
    bool has_completed = false;   // some operation is done now
  };
  // An exception inside ends here: the engine fails (kMemory, kSystem), and the peers are told.
  Step step(TimePoint time);
  // When step() should be called although no bell has rung; never once it is finished.
  TimePoint next_look() const {
    return is_finished() ? TimePoint::max() : negotiation_.next_look();
  }
  // Something is in flight here that needs driving.
  bool has_work() const { return !queue_.empty(); }

  // This rank wants to shut down: what has not been started completes with kShutdown, here and on
  // the peers.
  void request_leave() { is_leave_requested_ = true; }
  // It cannot wait for the peers' part in that any longer.
  void request_abort() { is_abort_requested_ = true; }
  // Nothing runs any more and nothing will; the fabric is not touched again.
  bool is_finished() const { return state_ == State::kClosed || has_failed(); }
  bool has_failed() const { return state_ == State::kFailed; }

 private:
  enum class State { kOpen, kClosing, kClosed, kFailed };

  Step take_step(TimePoint time);

  // The fabric's health, and what was requested. True: the engine has failed.
  bool is_ended_from_outside();
  bool take_submissions(TimePoint time);
  bool take_messages(TimePoint time);
  bool send_messages();
  bool carry_out(std::vector<Verdict> verdicts);
  void start(const StartGroup& group);
  void close(int leaver);
  bool complete_ended();
  // Ends everything here and tells the peers, as far as memory allows. Throws nothing.
  void fail(const Status& reason);
  void fail_by_exception(StatusCode code, const char* what);
  void tell_peers(const Status& reason);
  void warn_of_stalls(TimePoint time);

  Fabric& fabric_;
  const int rank_;
  const int size_;
  Negotiation negotiation_;
  Execution execution_;
  TensorQueue queue_;
  std::atomic<State> state_{State::kOpen};
  std::atomic<bool> is_leave_requested_{false};
  std::atomic<bool> is_abort_requested_{false};
  bool is_leaving_ = false;
  Status end_reason_;  // a neighbour has told its failure, or a message could not be sent
};

}  // namespace hv::runtime
