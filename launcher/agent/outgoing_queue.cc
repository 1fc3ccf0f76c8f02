// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/outgoing_queue.h"

#include <algorithm>
#include <utility>

namespace hv::launcher {

void OutgoingQueue::add_control(std::string frame) {
  control_.push_back({std::move(frame), false});
}

void OutgoingQueue::add_output(std::string frame) {
  output_bytes_ += frame.size();
  output_.push_back({std::move(frame), true});
}

int OutgoingQueue::next_buffers(iovec* buffers, int most) const {
  int count = 0;
  std::size_t skip = start_;
  for (const std::deque<QueuedFrame>* queue : {&under_way_, &control_, &output_}) {
    for (const QueuedFrame& next : *queue) {
      if (count == most) return count;
      buffers[count++] = {const_cast<char*>(next.frame.data()) + skip, next.frame.size() - skip};
      skip = 0;
    }
  }
  return count;
}

void OutgoingQueue::consume(std::size_t bytes) {
  while (bytes > 0) {
    if (under_way_.empty()) {
      std::deque<QueuedFrame>& queue = control_.empty() ? output_ : control_;
      under_way_.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    const QueuedFrame& next = under_way_.front();
    const std::size_t taken = std::min(bytes, next.frame.size() - start_);
    start_ += taken;
    bytes -= taken;
    if (next.is_output) output_bytes_ -= taken;
    if (start_ < next.frame.size()) return;
    under_way_.pop_front();
    start_ = 0;
  }
}

void OutgoingQueue::clear() {
  under_way_.clear();
  control_.clear();
  output_.clear();
  start_ = output_bytes_ = 0;
}

}  // namespace hv::launcher
