// FileThread: writes to a file system that may hang, one write after another, in a thread.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only, which waits for the thread in the destructor alone.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <deque>
#include <functional>
#include <optional>

#include "launcher/output/writer_thread.h"
#include "src/base/clock.h"
#include "src/base/status.h"

namespace hv::launcher {

class FileThread {
 public:
  explicit FileThread(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  // Waits for the write under way, and drops those that wait for it. A program that must not wait
  // ends by _exit instead.
  ~FileThread();
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  // write: called in the thread, once all writes before it have returned. done: called with its
  // result, on the executor.
  void start(std::function<Status()> write, std::function<void(Status result)> done);
  // When the oldest write whose result has not come was started; none: there is no such write.
  std::optional<TimePoint> busy_since() const;

 private:
  struct Write {
    std::function<Status()> write;
    std::function<void(Status)> done;
    TimePoint started;
  };
  void write_next();
  void end_write(Status result);

  const boost::asio::any_io_executor executor_;
  std::deque<Write> writes_;            // the first is under way
  std::optional<WriterThread> thread_;  // of the write under way
};

}  // namespace hv::launcher
