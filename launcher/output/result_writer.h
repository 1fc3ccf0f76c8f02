// ResultWriter: one thread that writes what rank 0 returns to the descriptor of --result-fd, byte
// for byte.
// SPDX-License-Identifier: Apache-2.0
//
// put() never blocks: the credit that the agent has bounds the queue. The thread does blocking
// writes and is left behind when it is still blocked at the destruction; it then reports nothing
// any more.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "launcher/output/reports.h"
#include "launcher/output/work_queue.h"
#include "launcher/output/writer_thread.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

class ResultWriter {
 public:
  // Both are called from the thread. Written: so many bytes have been written. Broken, once: the
  // descriptor cannot be written any more; what follows is dropped and counts as written.
  using Written = std::function<void(std::size_t bytes)>;
  using Broken = std::function<void(int errno_value)>;

  ResultWriter(UniqueFd fd, Written on_written, Broken on_broken);
  ~ResultWriter();

  void put(std::string bytes) { queue_->push(std::move(bytes)); }
  // What is left is written; then the descriptor is closed and the thread ends.
  void close() { queue_->close(); }
  bool join(std::optional<TimePoint> limit) { return thread_.join(limit); }

 private:
  std::shared_ptr<WorkQueue<std::string>> queue_;
  std::shared_ptr<Reports> reports_;
  WriterThread thread_;
};

}  // namespace hv::launcher
