// WorkQueue: hands work to one thread that takes all there is at once.
// SPDX-License-Identifier: Apache-2.0
//
// push() never blocks: what bounds the queue is the credits that its senders have.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/clock.h"

namespace hv::launcher {

template <class Item>
class WorkQueue {
 public:
  // After close() nothing is taken any more.
  void push(Item item) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    items_.push_back(std::move(item));
    if (std::exchange(is_awaited_, false)) arrived_.notify_one();
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    is_awaited_ = false;
    arrived_.notify_one();
  }

  // Waits for work or until the limit; items are empty then. False: closed, and nothing is left.
  bool take_all(std::vector<Item>& items, std::optional<TimePoint> limit = std::nullopt) {
    items.clear();
    std::unique_lock lock(mutex_);
    while (items_.empty() && !is_closed_) {
      is_awaited_ = true;
      if (!limit) {
        arrived_.wait(lock);
      } else if (arrived_.wait_until(lock, *limit) == std::cv_status::timeout) {
        break;
      }
    }
    is_awaited_ = false;
    items.swap(items_);
    return !items.empty() || !is_closed_;
  }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable arrived_;
  std::vector<Item> items_;
  bool is_awaited_ = false;
  bool is_closed_ = false;
};

}  // namespace hv::launcher
