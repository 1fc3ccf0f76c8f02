// StallReport: a tensor that this rank has warned of, on its way to the launcher.
// SPDX-License-Identifier: Apache-2.0
//
// note() is for any thread and never waits for a store; sending is for whoever drives.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "src/rendezvous/store.h"

namespace hv::runtime {

class StallReport {
 public:
  // Several at once: the first, which waited longest. Others are told by their next warnings.
  void note(wire::TensorStall stall) {
    const std::lock_guard lock(mutex_);
    if (!stall_) stall_ = std::move(stall);
    has_news_.store(true, std::memory_order_relaxed);
  }

  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }
  void send(Store& store) {
    std::optional<wire::TensorStall> stall;
    {
      const std::lock_guard lock(mutex_);
      stall = std::exchange(stall_, std::nullopt);
      has_news_.store(false, std::memory_order_relaxed);
    }
    if (stall) store.report(*stall);
  }

 private:
  std::mutex mutex_;  // guards stall_, and has_news_ with it
  std::optional<wire::TensorStall> stall_;
  std::atomic<bool> has_news_{false};
};

}  // namespace hv::runtime
