// FileWriter: one thread that writes rank.N/stdout and rank.N/stderr of an output directory, byte
// for byte.
// SPDX-License-Identifier: Apache-2.0
//
// A file that exists and is no regular file (a FIFO, a device) may block for ever, in open already:
// it gets a FileWriter of its own, so that it holds up nobody but its own rank. Files of earlier
// jobs are overwritten.
#pragma once

#include <memory>

#include "launcher/output/output_directory.h"
#include "launcher/output/reports.h"
#include "launcher/output/work_queue.h"
#include "launcher/output/writer_thread.h"

namespace hv::launcher {

class FileWriter {
 public:
  enum class Scope { kAllFiles, kOneSpecialFile };
  FileWriter(OutputDirectory directory, Scope scope, std::shared_ptr<Reports> reports);

  void put(WriterItem item) { queue_->push(std::move(item)); }
  // What is left comes out; then the thread ends.
  void close() { queue_->close(); }
  bool join(std::optional<TimePoint> limit) { return thread_.join(limit); }

 private:
  std::shared_ptr<WorkQueue<WriterItem>> queue_;
  WriterThread thread_;
};

}  // namespace hv::launcher
