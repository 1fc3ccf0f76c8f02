// Context: one rank's membership in a job: its store, fabric, backends, engine and driver.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call. Kept alive by everybody inside a call, so shutdown() may run beside a wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/backend/backend_list.h"
#include "runtime/backend/gpu/plugin_library.h"
#include "runtime/engine/driver.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/observation.h"
#include "runtime/engine/operation.h"
#include "runtime/transport/fabric.h"
#include "runtime/transport/selection.h"
#include "runtime/transport/shm/shared_heap.h"
#include "src/base/environment.h"
#include "src/contract/contract.h"
#include "src/rendezvous/store.h"

namespace hv::runtime {

// The handles of a context: numbers that a caller holds for its operations, unique in the process.
// Any thread may call. A released operation lives on until the engine has completed it.
class HandleTable {
 public:
  std::uint64_t add(OperationPtr operation) {
    static std::atomic<std::uint64_t> next{1};
    const std::uint64_t handle = next.fetch_add(1, std::memory_order_relaxed);
    add(handle, std::move(operation));
    return handle;
  }
  // Under the number that another table gave it.
  void add(std::uint64_t handle, OperationPtr operation) {
    const std::lock_guard lock(mutex_);
    operations_[handle] = std::move(operation);
  }
  // nullptr: unknown, released, or another context's.
  OperationPtr find(std::uint64_t handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = operations_.find(handle);
    return found == operations_.end() ? nullptr : found->second;
  }
  // The same, and it is no handle any more.
  OperationPtr take(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = operations_.extract(handle);
    return found.empty() ? nullptr : std::move(found.mapped());
  }

 private:
  mutable std::mutex mutex_;  // guards operations_
  std::unordered_map<std::uint64_t, OperationPtr> operations_;
};

// What a context is made of; tests give the parts themselves, to run ranks as threads.
struct ContextParts {
  RankIdentity identity;
  std::shared_ptr<void> keeps;  // what the store stands on, if anything
  std::unique_ptr<Store> store;
  Environment environment;  // for the knobs
  FabricConfig fabric;
  int number = 0;  // of this process's contexts
  // Peers answer a leaving rank within milliseconds unless they hang; then it goes without them.
  // hvrun.h and hvrun(3) name it.
  std::chrono::milliseconds leave_limit{5000};
};

// Of an operation whose handle is given back: see hvrun_release.
void let_go(Operation& operation);

class Context {
 public:
  // Throws hv::Error for a malformed knob. Blocks until every rank has come.
  static Status join(ContextParts parts, std::shared_ptr<Context>* context);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const RankIdentity& identity() const { return identity_; }

  // Never blocks. The operation's progress is the engine thread's affair until somebody waits.
  Status enqueue(OperationPtr operation, std::uint64_t* handle);
  // Enqueues and waits for ever; the outcome.
  Status run(OperationPtr operation);
  OperationPtr find(std::uint64_t handle) const { return handles_.find(handle); }
  // It is no handle of this context any more; what is left to do is let_go().
  OperationPtr take(std::uint64_t handle) { return handles_.take(handle); }
  bool release(std::uint64_t handle);
  // A caller asks for it, and may ask again.
  void await(const Operation& operation);
  // kInProgress when the deadline passed first.
  Status wait(const Operation& operation, TimePoint deadline);

  // Both wait until every rank of the job has done the same, in the same order.
  Status add_process_set(std::vector<std::int32_t> ranks, std::uint32_t* set);
  Status remove_process_set(std::uint32_t set);
  std::vector<ProcessSet> process_sets() const { return engine_.process_sets(); }

  // Memory that all ranks of this host reach; nullptr: there is none.
  std::shared_ptr<SharedHeap> heap() const;

  // As hvrun_timeline_start and hvrun_timeline_stop.
  Status start_timeline(const std::string& pattern);
  Status stop_timeline() { return observation_->timeline.stop(); }
  const Observation& observation() const { return *observation_; }
  // As hvrun_report_steps.
  std::optional<wire::StepTimes> report_steps(const wire::StepTimes& times) {
    return observation_->step_report->note(times);
  }

  // Leaves the job, within leave_limit, with MPI by as much later as a silent peer takes to be held
  // lost; the first call does it, later ones wait for that.
  void shutdown();

 private:
  Context(ContextParts parts, std::unique_ptr<Fabric> fabric, SetParts all,
          const EngineConfig& config, const BackendSettings& backends);

  Status change_sets(const OperationPtr& change);
  void settle_mpi();
  Status add(const OperationPtr& operation);

  const GpuEnds gpu_ends_;  // goes last, as the next
  const MpiPlacesPtr mpi_;
  const RankIdentity identity_;
  const std::chrono::milliseconds leave_limit_;
  const std::shared_ptr<void> keeps_;
  const std::unique_ptr<Store> store_;
  const std::unique_ptr<Fabric> fabric_;
  const ObservationPtr observation_;
  Engine engine_;
  Driver driver_;
  HandleTable handles_;
  std::mutex change_mutex_;    // held through a change of sets: they go one after the other
  std::mutex shutdown_mutex_;  // guards is_shut_down_
  bool is_shut_down_ = false;
};

}  // namespace hv::runtime
