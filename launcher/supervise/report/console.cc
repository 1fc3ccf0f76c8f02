// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/console.h"

#include <cstdio>

#include "src/base/text.h"

namespace hv::launcher {

void Console::say_error(const std::string& text, const std::string& advice) const {
  say("error: " + text + (advice.empty() ? "" : "\n  try: " + advice));
}

void Console::say_lines(const std::string& text) const {
  for (const std::string& line : split(text, '\n'))
    if (!line.empty()) room_.note(line);
}

void Console::report_phase(const std::string& phase) const {
  if (!is_verbose_) return;
  char time[64];
  std::snprintf(time, sizeof time, "%7.3f s  ", seconds_since(begun_));
  say(time + phase);
}

}  // namespace hv::launcher
