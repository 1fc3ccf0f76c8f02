// TimelineFile: a timeline's events on their way into a file, in Chrome's trace format.
// SPDX-License-Identifier: Apache-2.0
//
// A JSON array of events, one a line, written by a thread of its own in whole lines: what a killed
// process leaves behind loads, since viewers take an array without its closing bracket. push() from
// any thread; it waits for no disk. What the disk is too slow for is dropped, and counted. What
// goes wrong here ends the timeline with a warning, never the job.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::runtime {

struct TimelineEvent {
  TimePoint time{};
  std::uint32_t track = 0;  // a row of the process; b, e: the process set
  char phase = 'i';  // of the format: B begin, E end, i mark, M name of a row, b and e of a bucket
  const char* label = "";    // a constant; "" with E
  std::uint64_t number = 0;  // b, e: the bucket
  std::string text{};        // M: the name; i: what is behind the label; B, b: arguments, as JSON
};

// As write(2).
using WriteFunction = std::function<ssize_t(int fd, const void* bytes, std::size_t size)>;

class TimelineFile {
 public:
  // rank: the process of the format. Waits for the file as open(2) does. kSystem: there can be no
  // such file, or no thread for it.
  static Status open(const std::string& path, int rank, std::unique_ptr<TimelineFile>* file,
                     WriteFunction write = {});
  ~TimelineFile();  // as close()
  TimelineFile(const TimelineFile&) = delete;
  TimelineFile& operator=(const TimelineFile&) = delete;

  // False: dropped, also where memory is short. is_end: closes what was pushed before, and so is
  // kept as long as that was.
  bool push(TimelineEvent event, bool is_end);
  // Writes what is there and the closing bracket. kSystem: something could not be written.
  Status close();
  std::uint64_t dropped() const;

  static constexpr std::size_t kMostWaiting = 1 << 16;  // events, some 80 bytes each

 private:
  TimelineFile(std::string path, UniqueFd fd, int rank, WriteFunction write);
  void run();
  void write_all();
  std::string lines_of(const std::vector<TimelineEvent>& events) const;
  void write(const std::string& text);
  bool has_trouble() const;
  void end_by(Status trouble);

  const std::string path_;
  const UniqueFd fd_;
  const int rank_;
  const WriteFunction write_;
  const TimePoint begun_ = now();  // before any event
  const std::int64_t unix_ns_ = wall_clock_ns();
  mutable std::mutex mutex_;  // guards the next six
  std::condition_variable changed_;
  std::vector<TimelineEvent> waiting_;
  std::size_t writing_ = 0;  // events on their way into the file
  std::uint64_t dropped_ = 0;
  bool is_stopping_ = false;
  Status trouble_;
  std::thread thread_;  // last
};

// One event as a line of the file, without the comma behind it. Pure.
std::string timeline_line(const TimelineEvent& event, int rank);
// A text as a JSON string, in quotes; bytes that are no UTF-8 as \xNN.
std::string json_text(const std::string& text);

}  // namespace hv::runtime
