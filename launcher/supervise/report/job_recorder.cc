// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/job_recorder.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <utility>

#include "launcher/record/record_json.h"
#include "launcher/supervise/report/exit_summary.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

// The thread makes the text, because a large job's takes a while.
std::function<std::string()> text_of(JobRecord record) {
  return [record = std::move(record)] { return record_as_json(record); };
}

Status too_slow(const std::string& doing, Duration limit) {
  return {StatusCode::kSystem, doing + ": it takes longer than " + format_duration(limit)};
}

}  // namespace

JobRecorder::JobRecorder(Job& job, const Console& console, RecordingOptions options,
                         std::shared_ptr<SummaryFile> summary)
    : job_(job),
      console_(console),
      options_(std::move(options)),
      file_(job.spec.output.output_directory),
      summary_(summary ? std::move(summary)
                       : std::make_shared<SummaryFile>(job.spec.output.summary_file)),
      file_thread_(job.executor),
      summary_thread_(job.executor) {}

JobRecorder::Result JobRecorder::start(FileThread& thread, std::function<Status()> write,
                                       std::function<void(const Status&)> on_failure) {
  const auto result = std::make_shared<std::optional<Status>>();
  thread.start(std::move(write),
               [this, result, on_failure = std::move(on_failure)](Status written) {
                 *result = std::move(written);
                 if (on_failure && !(*result)->ok()) on_failure(**result);
                 job_.change.notify();
               });
  return result;
}

JobRecorder::Result JobRecorder::write_file(std::function<std::string()> text,
                                            std::function<void(const Status&)> on_failure) {
  if (file_.path().empty()) return std::make_shared<std::optional<Status>>(Status::success());
  return start(
      file_thread_, [this, text = std::move(text)] { return options_.write(file_, text()); },
      std::move(on_failure));
}

JobRecorder::Result JobRecorder::write_summary(std::string text) {
  if (job_.spec.output.summary_file.empty())
    return std::make_shared<std::optional<Status>>(Status::success());
  return start(summary_thread_, [this, text = std::move(text)] { return summary_->write(text); });
}

asio::awaitable<Status> JobRecorder::await_result(Result result, std::string doing,
                                                  TimePoint deadline, bool heeds_first_signal) {
  while (!*result) {
    if (job_.stops_at_once() && !end_at_once_) end_at_once_ = now() + options_.limit_at_once;
    if ((end_at_once_ && now() >= *end_at_once_) || (heeds_first_signal && job_.stop()))
      co_return Status{StatusCode::kSystem, doing + ": a signal ended the wait for it"};
    if (now() >= deadline) co_return too_slow(doing, options_.limit);
    co_await job_.change.wait(std::min(deadline, end_at_once_.value_or(deadline)));
  }
  co_return **result;
}

std::string JobRecorder::doing() const { return "write " + printable(file_.path(), 1000); }

asio::awaitable<Status> JobRecorder::write_first() {
  const Result result = write_file(text_of(record_of(job_)));
  co_return co_await await_result(result, doing(), now() + options_.limit, true);
}

void JobRecorder::write_started() {
  write_file(text_of(record_of(job_)), [this](const Status& failure) {
    if (!job_.stage.is_ending())
      job_.request_stop({StopReason::Kind::kOutputFailed, SIGPIPE, failure.message});
  });
}

asio::awaitable<void> JobRecorder::renew() {
  if (file_.path().empty()) co_return;
  // The agents answer in this time; the record of one that does not has its older numbers.
  const Duration for_answers = std::min<Duration>(kStepsAnswerTime, options_.interval / 2);
  asio::steady_timer timer(job_.executor);
  for (;;) {
    timer.expires_after(options_.interval - for_answers);
    co_await timer.async_wait(asio::use_awaitable);
    if (has_ended_) co_return;
    if (job_.stage.may_ranks_run()) job_.send_to_all(wire::StepsRequest{});
    timer.expires_after(for_answers);
    co_await timer.async_wait(asio::use_awaitable);
    if (has_ended_) co_return;
    renew_once();
  }
}

void JobRecorder::renew_once() {
  if (const std::optional<TimePoint> since = file_thread_.busy_since()) {
    if (now() - *since >= options_.interval) report_failure(too_slow(doing(), options_.interval));
    return;
  }
  JobRecord record = record_of(job_);
  record.times.steps_per_second = steps_per_second(record);
  write_file(text_of(std::move(record)),
             [this](const Status& failure) { report_failure(failure); });
}

void JobRecorder::report_failure(const Status& failure) {
  if (has_ended_ || !reported_.insert(failure.message).second) return;
  console_.say("warning: " + failure.message + "; the job goes on, and hvrun tries again every " +
               format_duration(options_.interval));
}

std::optional<double> JobRecorder::steps_per_second(const JobRecord& record) {
  const std::optional<JobProgress> progress = record.progress();
  if (!progress) return std::nullopt;
  const TimePoint time = now();
  const TimePoint before = std::exchange(time_before_, time);
  const std::uint64_t steps = std::exchange(steps_before_, progress->steps);
  const std::chrono::duration<double> since = time - before;
  // Fewer steps than before: another rank has reported its first ones.
  if (before == TimePoint() || progress->steps < steps || since.count() <= 0) return std::nullopt;
  return static_cast<double>(progress->steps - steps) / since.count();
}

asio::awaitable<Status> JobRecorder::write_attempt(const JobRecord& record,
                                                   const LastLines& last_lines) {
  has_ended_ = true;
  const Result result = write_file([text = record_as_json(record, last_lines)] { return text; });
  co_return co_await await_result(result, doing(), now() + options_.limit);
}

asio::awaitable<int> JobRecorder::write_end(const JobRecord& record, const LastLines& last_lines) {
  has_ended_ = true;
  const std::string text = record_as_json(record, last_lines);
  const TimePoint deadline = now() + options_.limit;
  const Result in_summary = write_summary(text), in_file = write_file([text] { return text; });
  const Status summarized = co_await await_result(
      in_summary, "write --summary " + printable(job_.spec.output.summary_file), deadline);
  if (!summarized.ok()) console_.say("warning: " + summarized.message);
  const Status written = co_await await_result(in_file, doing(), deadline);
  if (written.ok()) co_return record.exit_code;
  console_.say_error(written.message, "make room there, or send the output elsewhere");
  co_return record.exit_code == 0 ? static_cast<int>(ErrorKind::kStart) : record.exit_code;
}

void JobRecorder::write_failed_restart(const Error& error) {
  JobRecord record = record_of(job_);
  record.state = "not_started";
  record.exit_code = static_cast<int>(error.kind());
  record.error = error.what();
  record.advice = error.hint();
  // The error itself is reported by the caller.
  (void)summary_->write(record_as_json(record));
}

}  // namespace hv::launcher
