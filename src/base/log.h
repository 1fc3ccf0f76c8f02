// HV_LOG(level) << ...: one line for the operator on stderr, in one write, printable.
// SPDX-License-Identifier: Apache-2.0
//
// "time level who area: text". Set up once by main or by context creation; safe from any thread.
#pragma once

#include <sstream>
#include <string>

namespace hv {

enum class LogLevel { kError = 0, kWarn = 1, kInfo = 2, kDebug = 3, kTrace = 4 };

// who: "hvrun", or "host/rank". Later calls replace earlier ones.
void configure_log(LogLevel level, const std::string& who);
bool log_enabled(LogLevel level);
// Writes somewhere else than fd 2, for programs that own their stderr; nullptr: back to fd 2.
void set_log_sink(void (*sink)(const std::string& line));
bool parse_log_level(const std::string& text, LogLevel* level);

class LogLine {
 public:
  LogLine(LogLevel level, const char* area) : level_(level), area_(area) {}
  ~LogLine();
  template <typename T>
  LogLine& operator<<(const T& value) {
    text_ << value;
    return *this;
  }

 private:
  LogLevel level_;
  const char* area_;
  std::ostringstream text_;
};

}  // namespace hv

#define HV_LOG(level, area)                        \
  if (!::hv::log_enabled(::hv::LogLevel::level)) { \
  } else                                           \
    ::hv::LogLine(::hv::LogLevel::level, area)
