// Observation: what one rank's runtime lets others see of itself. Shared by all parts of an engine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/engine/timeline.h"
#include "runtime/transport/step_report.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

// Counters: what one rank's runtime has done since it joined.
// Written by whoever does it, mostly whoever drives; read by any thread at any time, each number by
// itself.
class Counter {
 public:
  void add(std::uint64_t more) { value_.fetch_add(more, std::memory_order_relaxed); }
  void operator++() { add(1); }
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Counters {
  Counter enqueued;          // operations taken from callers
  Counter completed;         // with success
  Counter failed;            // with an error
  Counter steps;             // of the engine that moved something
  Counter decisions;         // of process sets, applied here
  Counter cache_hits;        // tensors that were agreed on by number
  Counter cache_misses;      // by description
  Counter buckets;           // groups that travelled, of one tensor or more
  Counter fused_buckets;     // of more than one
  Counter fused_tensors;     // in those
  Counter kept_buckets;      // predicted, and started by their one number
  Counter given_up_buckets;  // predicted, and given up: what they held counted tensor by tensor
  Counter input_bytes;       // of tensors that this rank gave
  Counter result_bytes;      // of results that it got
  Counter stalls;            // warnings of stalls, told here
  Counter waits;             // calls that had to wait
  // Of set 0, at its root.
  Counter straggler_nanoseconds;             // tensors waited for their last rank
  std::atomic<std::int32_t> worst_rank{-1};  // the rank most waited for
  Counter worst_rank_nanoseconds;            // so long
  Counter wait_nanoseconds;                  // of callers, all threads together
};

struct Observation {
  Counters counters;
  Timeline timeline;
  const std::shared_ptr<MovedBytes> moved = std::make_shared<MovedBytes>();
  const std::shared_ptr<StepReport> step_report = std::make_shared<StepReport>();
  const std::shared_ptr<StallReport> stall_report = std::make_shared<StallReport>();
};

// Never null where it is used; whoever makes a part alone gets one of its own.
using ObservationPtr = std::shared_ptr<Observation>;
inline ObservationPtr or_own(ObservationPtr given) {
  return given ? std::move(given) : std::make_shared<Observation>();
}

}  // namespace hv::runtime
