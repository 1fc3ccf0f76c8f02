// StallReport: tensors that this rank has warned of, on their way to the launcher.
// SPDX-License-Identifier: Apache-2.0
//
// note() is for any thread and never waits for a store; sending is for whoever drives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "src/rendezvous/store.h"

namespace hv::runtime {

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

}  // namespace hv::runtime
