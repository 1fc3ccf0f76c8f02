// What a short program says on its standard output, within a time and a size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/process/command.h"
#include "src/process/exit_status.h"

namespace hv {

struct Captured {
  std::string trouble;  // not started, too slow, said too much, or its status is lost; in words
  std::optional<ExitStatus> status;  // none with trouble
  std::string text;
  bool is_well() const { return status && status->clean(); }
};

// Blocks. What it says on standard error, with_errors: comes with the text; else is dropped. Killed
// after the time, or once it has said more than the limit.
Captured capture_output(const Command& command, Duration most_time, bool with_errors = false);

// Of what a program has said, blanks at its end aside: mostly the reason where it has failed.
std::string last_line(const std::string& text);

constexpr std::size_t kMostCaptured = 1 << 16;

}  // namespace hv
