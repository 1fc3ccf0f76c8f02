// JobRecorder: writes an attempt's record to the output directory's job.json, from before its start
// to its end, and that of the last attempt to --summary.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only. One thread at a time writes job.json, in the order in which records come,
// so that none replaces a later one; another writes --summary. So a file system that hangs delays
// neither the ranks nor what a signal does.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launcher/record/job_folder.h"
#include "launcher/record/job_record.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/report/console.h"
#include "launcher/supervise/report/file_thread.h"
#include "launcher/supervise/report/summary_file.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/status.h"

namespace hv::launcher {

// Tests have others.
struct RecordingOptions {
  Duration interval = kRenewalInterval;
  Duration limit = kRecordTimeout;
  Duration limit_at_once = kLastMessageTimeout;  // from a second signal on
  std::function<Status(const JobFile& file, const std::string& text)> write = &JobFile::write;
};

class JobRecorder {
 public:
  // job and console outlive this. summary: that of the attempt before; null: opens it. Throws
  // Error(kUsage) when --summary cannot be opened.
  JobRecorder(Job& job, const Console& console, RecordingOptions options,
              std::shared_ptr<SummaryFile> summary);

  // Before the job starts: waits until job.json is written, or the job is to stop.
  boost::asio::awaitable<Status> write_first();
  // The ranks run. Returns at once; a failure stops the job.
  void write_started();
  // Renews job.json with how far the ranks have come, until the attempt's end is written. While a
  // write is under way, a renewal is left out. Each reason why one fails is reported once.
  boost::asio::awaitable<void> renew();
  // At the end of an attempt after which the job starts again. Writes job.json only.
  boost::asio::awaitable<Status> write_attempt(const JobRecord& record,
                                               const LastLines& last_lines);
  // At the end of the job. Returns its exit code: a lost record counts like lost output.
  boost::asio::awaitable<int> write_end(const JobRecord& record, const LastLines& last_lines);
  // The job was to start again, and could not: the summary of the whole job says so. Blocks.
  void write_failed_restart(const Error& error);
  const std::shared_ptr<SummaryFile>& summary() const { return summary_; }

 private:
  // The result of a write; none yet while it is under way.
  using Result = std::shared_ptr<std::optional<Status>>;

  // on_failure: called on the io_context thread.
  Result start(FileThread& thread, std::function<Status()> write,
               std::function<void(const Status&)> on_failure = nullptr);
  Result write_file(std::function<std::string()> text,
                    std::function<void(const Status&)> on_failure = nullptr);
  Result write_summary(std::string text);
  // doing: "write PATH", for the error of a write that is not waited for any longer.
  boost::asio::awaitable<Status> await_result(Result result, std::string doing, TimePoint deadline,
                                              bool heeds_first_signal = false);
  std::string doing() const;
  void renew_once();
  void report_failure(const Status& failure);
  std::optional<double> steps_per_second(const JobRecord& record);

  Job& job_;
  const Console& console_;
  const RecordingOptions options_;
  const JobFile file_;
  const std::shared_ptr<SummaryFile> summary_;
  FileThread file_thread_, summary_thread_;
  bool has_ended_ = false;                  // no record of a running job is written any more
  std::optional<TimePoint> end_at_once_{};  // after a second signal: until when all records wait
  std::set<std::string> reported_;          // why renewals have failed
  // At the last renewal with progress.
  std::uint64_t steps_before_ = 0;
  TimePoint time_before_{};
};

}  // namespace hv::launcher
