// Parses the stacks that Python's faulthandler, eu-stack and gdb print into frames. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// Addresses, pids, thread numbers and arguments of functions are left out: stacks that differ only
// in them are equal. Unknown lines are skipped, so that any text may be parsed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

struct ThreadStack {
  std::vector<std::string> frames;  // innermost first
  bool is_main = false;
  // Its innermost frame waits: for a lock, a socket, a timer.
  bool is_idle = false;
};

// "/home/ada/train.py:12 in step"
std::vector<ThreadStack> python_stacks(std::string_view faulthandler);
// "clock_nanosleep (libc.so.6)", "wait_here at train.c:4" where gdb knows that, "?? (libx.so)"
// where the function has no name.
std::vector<ThreadStack> native_stacks(std::string_view eu_stack_or_gdb);
// nullptr: no thread is the main one.
const ThreadStack* main_of(const std::vector<ThreadStack>& threads);
// The frames of a Python thread's native stack that its innermost Python frame has called.
std::vector<std::string> below_python(const std::vector<std::string>& native);

}  // namespace hv::launcher
