// ConsoleWriter: one thread that turns chunks into lines and writes them to hvrun's stdout, stderr
// or both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "launcher/output/console_tail.h"
#include "launcher/output/label.h"
#include "launcher/output/reports.h"
#include "launcher/output/work_queue.h"
#include "launcher/output/writer_thread.h"

namespace hv::launcher {

struct ConsoleTarget {
  int fd = 1;
  int stream = 1;  // for words and reports: 1 stdout, 2 stderr
  bool is_terminal = false;
  LabelStyle style;
};

// Do both lead to the same file, pipe or terminal? Then one thread must write both, or lines would
// be torn.
bool is_same_file(int fd, int other_fd);

class ConsoleWriter {
 public:
  ConsoleWriter(const ConsoleTarget& target, std::shared_ptr<Reports> reports);

  void put(WriterItem item) { queue_->push(std::move(item)); }
  // What is left comes out, unfinished lines too; then the thread ends.
  void close() { queue_->close(); }
  bool join(std::optional<TimePoint> limit) { return thread_.join(limit); }
  // What has been written.
  const ConsoleTail& tail() const { return *tail_; }

 private:
  std::shared_ptr<ConsoleTail> tail_;  // outlives this where the thread is left behind
  std::shared_ptr<WorkQueue<WriterItem>> queue_;
  WriterThread thread_;
};

}  // namespace hv::launcher
