// What runs on this host, from /proc: parsing (pure), and who descends from whom.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';              // R S D T t Z X
  std::uint32_t flags = 0;       // PF_*
  std::uint64_t start_time = 0;  // in ticks since boot: with the pid it names one process for good
  std::uint64_t cpu_ticks = 0;   // of user and system time
  std::string name;

  bool is_zombie() const { return state == 'Z' || state == 'X'; }
  bool is_stopped() const { return state == 'T'; }
  bool is_standing_still() const { return is_stopped() || state == 't'; }  // t: by a debugger
};

// One /proc/PID/stat. The name may hold spaces, parentheses and newlines.
std::optional<ProcessEntry> parse_stat(std::string_view text);

std::optional<ProcessEntry> read_process(pid_t pid, const std::string& proc = "/proc");
std::vector<ProcessEntry> read_processes(const std::string& proc = "/proc");

// Everything below these pids, themselves not; in any order. Pure.
std::vector<ProcessEntry> descendants(const std::vector<ProcessEntry>& all,
                                      const std::set<pid_t>& ancestors);

// A set of signals in a status text, such as "SigCgt:", holds that one. Pure.
bool holds_signal(std::string_view status, std::string_view set, int signal);

// The process has begun to end (its memory may take a second to be freed) or waits to be reaped; a
// core being written counts, and a SIGKILL that waits for a free processor. From its stat and
// status texts; pure.
bool is_on_its_way_out(const ProcessEntry& process, std::string_view status);

// The text of /proc/PID/environ; empty where it may not be read.
std::string environment_of(pid_t pid);

// NAME=VALUE stands, whole, in an environ text (entries end in zero bytes). Pure.
bool environ_holds(std::string_view environ_text, std::string_view entry);

// Whether an executable of that name is a shell. Pure.
bool is_shell(std::string_view name);

// "pid 12 (name)".
std::string describe(const ProcessEntry& process);

}  // namespace hv::launcher
