// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/console.h"

#include <algorithm>

#include "src/base/text.h"

namespace hv::launcher {

void Console::write(const std::string& text) const { room_.note(printable_lines(text)); }

void Console::say_error(const std::string& text, const std::string& advice) const {
  say("error: " + text + (advice.empty() ? "" : "\n  try: " + advice));
}

void Console::say_lines(const std::string& text) const {
  for (const std::string& line : split(text, '\n'))
    if (!line.empty()) write(line);
}

void Console::report_phase(const std::string& phase) const {
  if (!is_verbose_) return;
  constexpr std::size_t kColumns = 9;  // "12.3 ms", "2 min 5 s"
  const std::string time = format_duration(now() - begun_);
  say(std::string(kColumns - std::min(kColumns, time.size()), ' ') + time + "  " + phase);
}

}  // namespace hv::launcher
