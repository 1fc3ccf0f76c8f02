// What a rank reports to the launcher while it works: stalled tensors, and times of training steps.
// SPDX-License-Identifier: Apache-2.0
//
// note() may be called on any thread and never waits for a store; the driving thread sends.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/rendezvous/store.h"

namespace hv::runtime {

// Tensors that this rank has warned of.
class StallReport {
 public:
  // Of those that wait for the same ranks the first noted, which should have waited longest; where
  // they wait for too many different ones, the next warnings tell the others.
  void note(wire::TensorStall stall) {
    const std::lock_guard lock(mutex_);
    const bool is_told =
        std::any_of(stalls_.begin(), stalls_.end(), [&stall](const wire::TensorStall& other) {
          return other.missing == stall.missing && other.more_missing == stall.more_missing;
        });
    if (is_told || stalls_.size() == kMost) return;
    stalls_.push_back(std::move(stall));
    has_news_.store(true, std::memory_order_relaxed);
  }

  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }
  void send(Store& store) {
    std::vector<wire::TensorStall> stalls;
    {
      const std::lock_guard lock(mutex_);
      stalls = std::exchange(stalls_, {});
      has_news_.store(false, std::memory_order_relaxed);
    }
    for (const wire::TensorStall& stall : stalls) store.report(stall);
  }

 private:
  static constexpr std::size_t kMost = 4;

  std::mutex mutex_;  // guards stalls_, and has_news_ with it
  std::vector<wire::TensorStall> stalls_;
  std::atomic<bool> has_news_{false};
};

// The newest times of its training's steps that the program has reported.
class StepReport {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(1);

  // The totals so far. They only grow: returns the last ones, and keeps them, if any is less now.
  std::optional<wire::StepTimes> note(const wire::StepTimes& times) {
    const std::lock_guard lock(mutex_);
    if (!newest_.may_become(times)) return newest_;
    newest_ = times;
    has_news_.store(true, std::memory_order_relaxed);
    return std::nullopt;
  }

  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }
  // At most once an interval; what comes in between replaces what has not been sent.
  void send_if_due(Store& store, TimePoint time) {
    if (time < next_) return;
    next_ = time + kInterval;
    send(store);
  }
  // Nothing will be sent any more.
  void send_last(Store& store) {
    if (has_news()) send(store);
  }

 private:
  void send(Store& store) {
    wire::StepTimes times;
    {
      const std::lock_guard lock(mutex_);
      times = newest_;
      has_news_.store(false, std::memory_order_relaxed);
    }
    store.report(times);
  }

  std::mutex mutex_;  // guards newest_, and has_news_ with it
  wire::StepTimes newest_;
  std::atomic<bool> has_news_{false};
  TimePoint next_{};
};

}  // namespace hv::runtime
