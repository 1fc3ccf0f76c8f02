// Stacks as programs tell them (faulthandler of Python, eu-stack, gdb), read into frames. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// Addresses, pids, thread numbers and arguments of functions are left out: stacks that differ by
// them alone are equal. Any text is fine: lines that are none of theirs are passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

struct ThreadStack {
  std::vector<std::string> frames;  // innermost first
  bool is_main = false;
  // It waits for work: a lock, a socket, a timer; as far as its innermost frames say.
  bool is_idle = false;
};

// "/home/ada/train.py:12 in step"
std::vector<ThreadStack> python_stacks(std::string_view faulthandler);
// "clock_nanosleep (libc.so.6)", "wait_here at train.c:4" where gdb knows that, "?? (libx.so)"
// where the function has no name.
std::vector<ThreadStack> native_stacks(std::string_view eu_stack_or_gdb);
// nullptr: there is none.
const ThreadStack* main_of(const std::vector<ThreadStack>& threads);
// What a Python thread's native stack adds to its Python frames: what is inside of the innermost.
std::vector<std::string> below_python(const std::vector<std::string>& native);

}  // namespace hv::launcher
