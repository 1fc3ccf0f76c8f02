// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/stacks/stack_frames.h"

#include <algorithm>
#include <cctype>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostThreads = 2000;
constexpr std::size_t kMostFrameBytes = 300;

// A thread with such an innermost frame waits.
constexpr const char* kIdlePython[] = {"/threading.py:", "/queue.py:",      "/selectors.py:",
                                       "/socket.py:",    "/connection.py:", "/_hvrun_waits.py:"};
constexpr const char* kIdleNative[] = {
    "futex",    "cond_wait", "cond_timedwait", "poll", "select",    "accept", "nanosleep",
    "sem_wait", "pause",     "sigwait",        "recv", "semaphore", "read",   "io_getevents"};

bool has_prefix(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool has_any(std::string_view text, const auto& parts) {
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](const char* part) { return text.find(part) != std::string_view::npos; });
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// `  File "train.py", line 12 in step`; empty: the line has no frame.
std::string python_frame(std::string_view line) {
  constexpr std::string_view kBegin = "  File \"", kLine = "\", line ";
  if (!has_prefix(line, kBegin)) return "";
  const std::size_t end = line.rfind(kLine);
  if (end == std::string_view::npos || end < kBegin.size()) return "";
  const std::string_view rest = line.substr(end + kLine.size());
  const std::string_view number = rest.substr(0, rest.find(' '));
  if (!parse_integer(number) && number != "???") return "";
  const std::string_view function =
      number.size() == rest.size() ? "" : rest.substr(number.size() + 1);
  return printable(std::string(line.substr(kBegin.size(), end - kBegin.size())) + ":" +
                       std::string(number) + (function.empty() ? "" : " ") + std::string(function),
                   kMostFrameBytes);
}

// The text after "#N" and an optional address.
std::string_view without_number(std::string_view line) {
  std::size_t at = 1;
  while (at < line.size() && std::isdigit(static_cast<unsigned char>(line[at]))) ++at;
  if (at == 1) return {};
  std::string_view rest = trim(line.substr(at));
  if (!has_prefix(rest, "0x")) return rest;
  const std::size_t end = rest.find(' ');
  return end == std::string_view::npos ? "??" : trim(rest.substr(end));
}

// By gdb: "in f (n=1) at x.c:4", "f (n=1) at x.c:4", "in ?? () from /lib/x.so".
std::string gdb_frame(std::string_view rest) {
  if (has_prefix(rest, "in ")) rest.remove_prefix(3);
  const std::size_t arguments = rest.find(" (");
  std::string frame(rest.substr(0, arguments));
  if (const std::size_t from = rest.rfind(" from "); from != std::string_view::npos)
    return frame + " (" + std::string(base_name(rest.substr(from + 6))) + ")";
  if (const std::size_t at = rest.rfind(") at "); at != std::string_view::npos)
    frame += " at " + std::string(base_name(rest.substr(at + 5)));
  return frame;
}

// "hv::Driver::wait" of "hv::Driver::wait(std::atomic<bool> const&)". Parentheses at the beginning
// of a part of the name hold no arguments: "(anonymous namespace)::f".
std::string_view without_arguments(std::string_view function) {
  for (std::size_t at = 1; at < function.size(); ++at)
    if (function[at] == '(' && function[at - 1] != ':' && function[at - 1] != ' ')
      return function.substr(0, at);
  return function;
}

// By eu-stack -m: "clock_nanosleep@GLIBC_2.2.5 - /usr/lib/libc.so.6", "- /usr/bin/python3.11".
std::string elfutils_frame(std::string_view rest) {
  std::size_t dash = rest.rfind(" - ");
  std::string_view function = dash == std::string_view::npos ? rest : rest.substr(0, dash);
  std::string_view module = dash == std::string_view::npos ? "" : rest.substr(dash + 3);
  if (has_prefix(rest, "- ")) function = "", module = rest.substr(2);
  function = trim(function.substr(0, function.find('@')));
  function = without_arguments(function);
  return (function.empty() ? "??" : std::string(function)) +
         (module.empty() ? "" : " (" + std::string(base_name(module)) + ")");
}

std::string native_frame(std::string_view line, bool is_gdb) {
  const std::string_view rest = without_number(line);
  if (rest.empty()) return "";
  return printable(is_gdb ? gdb_frame(rest) : elfutils_frame(rest), kMostFrameBytes);
}

bool is_python(std::string_view frame) {
  return frame.find("(python3") != std::string_view::npos ||
         frame.find("(libpython") != std::string_view::npos;
}

void mark_idle(std::vector<ThreadStack>* threads, const auto& waits) {
  for (ThreadStack& thread : *threads)
    thread.is_idle = thread.frames.empty() || has_any(thread.frames[0], waits);
}

}  // namespace

// faulthandler writes the newest thread first, and at most 100; "..." stands for the other threads.
std::vector<ThreadStack> python_stacks(std::string_view faulthandler) {
  std::vector<ThreadStack> threads;
  std::size_t current = 0;
  bool is_cut = false;
  for (const std::string& line : split(faulthandler, '\n')) {
    const bool is_current = has_prefix(line, "Current thread ");
    if (is_current || has_prefix(line, "Thread ")) {
      if (threads.size() == kMostThreads) break;
      threads.emplace_back();
      if (is_current) current = threads.size() - 1;
    } else if (line == "...") {
      is_cut = true;
    } else if (std::string frame = python_frame(line); !frame.empty() && !threads.empty()) {
      threads.back().frames.push_back(std::move(frame));
    }
  }
  if (!threads.empty()) (is_cut ? threads[current] : threads.back()).is_main = true;
  mark_idle(&threads, kIdlePython);
  return threads;
}

// eu-stack begins with the main thread; gdb too, by its options.
std::vector<ThreadStack> native_stacks(std::string_view eu_stack_or_gdb) {
  std::vector<ThreadStack> threads;
  bool is_gdb = false;
  for (const std::string& line : split(eu_stack_or_gdb, '\n')) {
    const bool is_thread_of_gdb = has_prefix(line, "Thread ");
    if (is_thread_of_gdb || has_prefix(line, "TID ")) {
      if (threads.size() == kMostThreads) break;
      is_gdb = is_thread_of_gdb;
      threads.emplace_back();
    } else if (has_prefix(line, "#") && !threads.empty()) {
      if (std::string frame = native_frame(line, is_gdb); !frame.empty())
        threads.back().frames.push_back(std::move(frame));
    }
  }
  if (!threads.empty()) threads.front().is_main = true;
  mark_idle(&threads, kIdleNative);
  return threads;
}

const ThreadStack* main_of(const std::vector<ThreadStack>& threads) {
  const auto found = std::find_if(threads.begin(), threads.end(),
                                  [](const ThreadStack& thread) { return thread.is_main; });
  return found == threads.end() ? nullptr : &*found;
}

std::vector<std::string> below_python(const std::vector<std::string>& native) {
  const auto end = std::find_if(native.begin(), native.end(), [](const std::string& frame) {
    return frame.find("PyEval_EvalFrame") != std::string::npos;
  });
  if (end == native.end()) return {};
  std::vector<std::string> below(native.begin(), end);
  while (!below.empty() && is_python(below.back())) below.pop_back();
  return below;
}

}  // namespace hv::launcher
