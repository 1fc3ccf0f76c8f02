// WriterThread: a thread for blocking writes that can be left behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "src/base/clock.h"

namespace hv::launcher {

class WriterThread {
 public:
  // body owns, or shares in, everything it touches. It runs with all signals blocked: they are for
  // the thread that handles them, and a closed pipe is an EPIPE instead of SIGPIPE.
  explicit WriterThread(std::function<void()> body);
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  // Waits for the body's end, until the limit if there is one. False: it still runs.
  bool join(std::optional<TimePoint> limit = std::nullopt);

 private:
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace hv::launcher
