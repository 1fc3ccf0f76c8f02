// SPDX-License-Identifier: Apache-2.0
#include "src/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>

#include "src/base/text.h"

namespace hv {
namespace {

std::atomic<int> current_level{static_cast<int>(LogLevel::kWarn)};
std::atomic<void (*)(const std::string&)> current_sink{nullptr};
std::mutex who_mutex;  // guards who
std::string& who() {
  static std::string text = "hvrun";
  return text;
}

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kTrace:
      return "trace";
  }
  return "?";
}

std::string time_text() {
  timespec stamp{};
  clock_gettime(CLOCK_REALTIME, &stamp);
  tm parts{};
  localtime_r(&stamp.tv_sec, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03ld", stamp.tv_nsec / 1000000);
  return text;
}

}  // namespace

void configure_log(LogLevel level, const std::string& name) {
  current_level = static_cast<int>(level);
  const std::lock_guard lock(who_mutex);
  who() = name;
}

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) <= current_level.load(std::memory_order_relaxed);
}

void set_log_sink(void (*sink)(const std::string& line)) { current_sink = sink; }

bool parse_log_level(const std::string& text, LogLevel* level) {
  for (const LogLevel candidate :
       {LogLevel::kError, LogLevel::kWarn, LogLevel::kInfo, LogLevel::kDebug, LogLevel::kTrace}) {
    if (text == level_name(candidate)) {
      *level = candidate;
      return true;
    }
  }
  return false;
}

LogLine::~LogLine() {
  std::string line = time_text() + " " + level_name(level_) + " ";
  {
    const std::lock_guard lock(who_mutex);
    line += who();
  }
  line += std::string(" ") + area_ + ": " + printable_lines(text_.str()) + "\n";
  if (auto* sink = current_sink.load()) {
    sink(line);
    return;
  }
  // A log line that cannot be written has nowhere else to go.
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t wrote = ::write(2, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    done += static_cast<std::size_t>(wrote);
  }
}

}  // namespace hv
