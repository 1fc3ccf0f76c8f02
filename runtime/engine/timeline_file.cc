// The file and its thread.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/timeline_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/engine/attempt.h"
#include "runtime/transport/io_thread.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

// What a killed process loses at most.
constexpr std::chrono::milliseconds kFlushEvery{100};
constexpr std::size_t kMostNameBytes = 1024;

// Microseconds with their fraction, of the host's monotonic clock: the files of its ranks fit.
std::string time_text(TimePoint time) {
  const std::int64_t ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  char text[40];
  std::snprintf(text, sizeof text, "%" PRId64 ".%03d", ns / 1000, static_cast<int>(ns % 1000));
  return text;
}

std::string head_of(int rank, TimePoint begun, std::int64_t unix_ns) {
  const std::string pid = ",\"pid\":" + std::to_string(rank) + ",\"tid\":0,";
  const std::string name = "\"args\":{\"name\":\"rank " + std::to_string(rank) + "\"}},\n";
  return "[\n{\"name\":\"process_name\",\"ph\":\"M\"" + pid + name +
         "{\"name\":\"process_sort_index\",\"ph\":\"M\"" + pid +
         "\"args\":{\"sort_index\":" + std::to_string(rank) + "}},\n" +
         "{\"name\":\"begin\",\"ph\":\"i\",\"s\":\"p\",\"ts\":" + time_text(begun) + pid +
         "\"args\":{\"unix_ns\":" + std::to_string(unix_ns) + "}},\n";
}

std::string foot_of(int rank, std::uint64_t dropped) {
  return "{\"name\":\"end\",\"ph\":\"i\",\"s\":\"p\",\"ts\":" + time_text(now()) +
         ",\"pid\":" + std::to_string(rank) +
         ",\"tid\":0,\"args\":{\"dropped\":" + std::to_string(dropped) + "}}\n]\n";
}

}  // namespace

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char byte : printable(text, kMostNameBytes)) {
    if (byte == '"' || byte == '\\') quoted += '\\';
    quoted += byte;
  }
  return quoted + "\"";
}

std::string timeline_line(const TimelineEvent& event, int rank) {
  const std::string place =
      ",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(event.track);
  if (event.phase == 'M') {
    return "{\"name\":\"thread_name\",\"ph\":\"M\"" + place +
           ",\"args\":{\"name\":" + json_text(event.text) + "}}";
  }
  std::string line =
      std::string("{\"ph\":\"") + event.phase + "\",\"ts\":" + time_text(event.time) + place;
  if (event.phase == 'E') return line + "}";
  if (event.phase == 'i')
    return line + ",\"s\":\"t\",\"name\":" + json_text(event.label + event.text) + "}";
  line += std::string(",\"name\":\"") + event.label + "\"";
  if (event.phase == 'b' || event.phase == 'e')
    line += ",\"cat\":\"bucket\",\"id\":\"" + std::to_string(event.track) + "." +
            std::to_string(event.number) + "\"";
  if (!event.text.empty()) line += ",\"args\":" + event.text;
  return line + "}";
}

Status TimelineFile::open(const std::string& path, int rank, std::unique_ptr<TimelineFile>* file,
                          WriteFunction write) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) {
    Status status = system_status("open the timeline's file '" + printable(path) + "'", errno);
    status.message += "; give a file in a folder that is there and can be written (HVRUN_TIMELINE)";
    return status;
  }
  try {
    file->reset(new TimelineFile(path, std::move(fd), rank, write ? std::move(write) : ::write));
  } catch (const std::system_error& error) {  // no thread
    return io_trouble("begin to write the timeline '" + printable(path) + "'", error);
  }
  return Status::success();
}

TimelineFile::TimelineFile(std::string path, UniqueFd fd, int rank, WriteFunction write)
    : path_(std::move(path)), fd_(std::move(fd)), rank_(rank), write_(std::move(write)) {
  thread_ = start_quiet_thread([this] { run(); });
}

TimelineFile::~TimelineFile() { (void)close(); }

bool TimelineFile::push(TimelineEvent event, bool is_end) {
  const std::lock_guard lock(mutex_);
  if (!trouble_.ok() || (waiting_.size() >= kMostWaiting && !is_end)) {
    ++dropped_;
    return false;
  }
  try {
    waiting_.push_back(std::move(event));
  } catch (const std::bad_alloc&) {
    ++dropped_;
    return false;
  }
  if (waiting_.size() == kMostWaiting / 2) changed_.notify_one();
  return true;
}

std::uint64_t TimelineFile::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::string TimelineFile::lines_of(const std::vector<TimelineEvent>& events) const {
  std::string lines;
  for (const TimelineEvent& event : events) lines += timeline_line(event, rank_) + ",\n";
  return lines;
}

// Whoever joins the thread need not know how it ended.
void TimelineFile::run() {
  try {
    write_all();
  } catch (const std::exception& error) {
    attempt([&] {
      end_by(
          {StatusCode::kSystem, "write the timeline '" + printable(path_) + "': " + error.what()});
    });
  }
}

void TimelineFile::write_all() {
  write(head_of(rank_, begun_, unix_ns_));
  std::vector<TimelineEvent> events;
  for (bool is_last = false; !is_last && !has_trouble();) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kFlushEvery,
                        [this] { return is_stopping_ || waiting_.size() >= kMostWaiting / 2; });
      events.clear();
      events.swap(waiting_);
      writing_ = events.size();
      is_last = is_stopping_;
    }
    write(lines_of(events));
    const std::lock_guard lock(mutex_);
    writing_ = 0;
  }
  write(foot_of(rank_, dropped()));
}

bool TimelineFile::has_trouble() const {
  const std::lock_guard lock(mutex_);
  return !trouble_.ok();
}

// The code counts even where there is no memory for words.
void TimelineFile::end_by(Status trouble) {
  {
    const std::lock_guard lock(mutex_);
    trouble_.code = trouble.code;
    dropped_ += writing_ + waiting_.size();
    waiting_ = {};
  }
  HV_LOG(kWarn, "timeline") << trouble.message << "; the timeline ends here, the job goes on";
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(trouble);
}

// After the first failure nothing more is written: a file with a hole would be no JSON.
void TimelineFile::write(const std::string& text) {
  if (has_trouble()) return;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = write_(fd_.get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return end_by(system_status("write the timeline '" + printable(path_) + "'", errno));
    done += static_cast<std::size_t>(got);
  }
}

Status TimelineFile::close() {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) return trouble_;
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  const std::lock_guard lock(mutex_);
  if (dropped_ > 0 && trouble_.ok()) {
    HV_LOG(kWarn, "timeline") << "'" << printable(path_) << "' lacks " << dropped_
                              << " events, for which it could not be written fast enough";
  }
  return trouble_;
}

}  // namespace hv::runtime
