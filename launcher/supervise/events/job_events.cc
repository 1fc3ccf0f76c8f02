// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/job_events.h"

#include <boost/asio/post.hpp>

namespace hv::launcher {

namespace asio = boost::asio;

void JobEvents::start(Dispatch dispatch, std::function<void()> idle) {
  const std::lock_guard lock(mutex_);
  dispatch_ = std::move(dispatch);
  idle_ = std::move(idle);
  if (!waiting_.empty()) schedule();
}

void JobEvents::add(JobEvent event) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(event));
  if (!is_due_ && dispatch_) schedule();
}

// mutex_ is held.
void JobEvents::schedule() {
  is_due_ = true;
  asio::post(executor_, [this] { dispatch_all(); });
}

void JobEvents::dispatch_all() {
  std::deque<JobEvent> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(waiting_);
    is_due_ = false;
  }
  for (JobEvent& event : events) dispatch_(std::move(event));
  idle_();
}

}  // namespace hv::launcher
