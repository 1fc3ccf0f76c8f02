// StepReport: the newest times of its training's steps that a program has told, on their way to the
// launcher.
// SPDX-License-Identifier: Apache-2.0
//
// note() is for any thread and never waits for a store; sending is for whoever drives.
#pragma once

#include <atomic>
#include <mutex>

#include "src/base/clock.h"
#include "src/rendezvous/store.h"

namespace hv::runtime {

class StepReport {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(1);

  void note(const wire::StepTimes& times) {
    const std::lock_guard lock(mutex_);
    newest_ = times;
    has_news_.store(true, std::memory_order_relaxed);
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
