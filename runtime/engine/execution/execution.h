// Execution: the groups that were decided on, carried out by a backend, in the order of the
// decisions.
// SPDX-License-Identifier: Apache-2.0
//
// One thread at a time (whoever holds the engine's progress). Nothing blocks.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/engine/execution/long_work.h"
#include "runtime/engine/execution/result_room.h"
#include "runtime/engine/execution/window_table.h"
#include "runtime/engine/observation.h"
#include "runtime/engine/operation.h"

namespace hv::runtime {

struct ExecutionConfig {
  Place place;
  bool deterministic = false;
  ObservationPtr observation{};
  // Of backends that are being prepared, and of devices; zero: never.
  Duration stall_limit{}, stall_end{};
};

class Execution {
 public:
  // backends: in order of preference; they outlive this.
  Execution(const ExecutionConfig& config, std::vector<Backend*> backends)
      : config_(config),
        observation_(or_own(config.observation)),
        backends_(std::move(backends)),
        long_work_(config.stall_limit, config.stall_end) {}

  // Any thread, before it is enqueued: kUnsupported, as Backend::check_device.
  Status check_device(const Operation& operation) const;
  // operations: one group, alike in everything that fusion asks for. first_extents: where they
  // vary, by rank.
  void start(std::vector<OperationPtr> operations, const std::vector<std::int64_t>& first_extents);
  // Does what can be done without waiting. True: something was done.
  bool advance(TimePoint time);
  bool is_idle() const { return running_.empty() && waiting_.empty(); }
  // Something has been started and not been given to its device yet, where it would hold up what
  // stands behind it.
  bool is_launching() const;
  // What needs most of it, of all that runs.
  Attention attention() const;
  // When advance() is to be called again though no bell rings.
  TimePoint next_look() const;

  // Operations that have ended since the last call, with their outcome.
  std::vector<std::pair<OperationPtr, Status>> take_ended() { return std::exchange(ended_, {}); }
  // What backends have allocated for the set. Any thread.
  const WindowTable& windows() const { return windows_; }
  // A collective failed, or memory was short here, so the ranks no longer agree on what has been
  // done: nothing can go on.
  const Status& failure() const { return failure_; }
  // After a failure nothing is started any more, and devices are to let go of what callers have
  // lent: true once they have; asked until then.
  bool abandon();
  // After that: what runs and what waits ends with this outcome.
  void give_up(const Status& reason);

 private:
  struct Running {
    std::vector<OperationPtr> operations;
    std::unique_ptr<Collective> collective;
    bool has_begun = false;  // as the timeline knows
  };

  // What waits for a backend to be prepared, in order.
  struct Waiting {
    std::vector<OperationPtr> operations;
    CollectiveRequest request;
  };

  void watch(TimePoint time);
  void note_launch();
  std::string advice() const;
  void begin(std::vector<OperationPtr> operations, CollectiveRequest request);
  std::function<void(MemoryPtr)> taker_of_memory(const OperationPtr& operation);
  bool advance_preparation();
  void tell_decided(const std::vector<OperationPtr>& operations);
  void tell_begun(Running& group);

  void note_device(const Running& group);
  void end_empty(const std::vector<OperationPtr>& operations);
  void end(const std::vector<OperationPtr>& operations, const Status& outcome,
           const MomentPtr& ended = nullptr);

  const ExecutionConfig config_;
  const ObservationPtr observation_;
  std::uint64_t buckets_ = 0;
  const std::vector<Backend*> backends_;
  WindowTable windows_;
  std::uint32_t allocations_ = 0;  // that have started, as on all members
  std::vector<Running> running_;
  TimePoint last_look_{};
  LongWork long_work_;
  std::shared_ptr<Accelerator> accelerator_;  // keeps results that callers have let go of
  TimePoint next_watch_ = TimePoint::max();   // max: nothing goes on beside the host
  std::unique_ptr<Collective> preparation_;
  std::deque<Waiting> waiting_;  // empty where nothing is being prepared
  std::vector<std::pair<OperationPtr, Status>> ended_;
  Status failure_;
};

}  // namespace hv::runtime
