// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/file_thread.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace hv::launcher {

FileThread::~FileThread() {
  if (thread_) thread_->join();
}

void FileThread::start(std::function<Status()> write, std::function<void(Status)> done) {
  writes_.push_back({std::move(write), std::move(done), now()});
  if (writes_.size() == 1) write_next();
}

std::optional<TimePoint> FileThread::busy_since() const {
  return writes_.empty() ? std::nullopt : std::optional(writes_.front().started);
}

void FileThread::write_next() {
  thread_.emplace([this, write = std::move(writes_.front().write)] {
    boost::asio::post(executor_,
                      [this, result = write()]() mutable { end_write(std::move(result)); });
  });
}

void FileThread::end_write(Status result) {
  thread_->join();
  thread_.reset();
  const std::function<void(Status)> done = std::move(writes_.front().done);
  writes_.pop_front();
  if (!writes_.empty()) write_next();
  done(std::move(result));
}

}  // namespace hv::launcher
