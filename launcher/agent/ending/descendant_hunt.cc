// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/descendant_hunt.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// A chain of forks loses the race against a read and a kill in most rounds; another round costs
// microseconds.
constexpr int kRoundsForChildren = 20;

// Returns those that belong to another user: /proc may hide them (hidepid) from the process table.
std::set<pid_t> kill_direct_children() {
  std::set<std::string> killed;
  std::set<pid_t> refused;
  for (int round = 0; round < kRoundsForChildren; ++round) {
    bool found = false;
    for (const std::string& word :
         split(read_file("/proc/thread-self/children").value_or(""), ' ')) {
      const auto pid = parse_integer(word);
      if (!pid || !killed.insert(word).second) continue;
      found = true;
      if (::kill(static_cast<pid_t>(*pid), SIGKILL) != 0 && errno == EPERM)
        refused.insert(static_cast<pid_t>(*pid));
    }
    if (!found) break;
  }
  return refused;
}

bool has_children() {
  siginfo_t info;
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

}  // namespace

std::vector<ProcessEntry> own_descendants() {
  // Reading the process table of a large host takes tens of milliseconds.
  if (!has_children()) return {};
  return descendants(read_processes(), {::getpid()});
}

bool reap_children(const std::function<void(pid_t, int)>& on_end) {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      on_end(pid, status);
    } else if (pid == 0) {
      return true;
    } else if (errno != EINTR) {
      return false;
    }
  }
}

bool DescendantHunt::step() {
  std::set<pid_t> refused = kill_direct_children();
  stuck_.clear();
  forbidden_.clear();
  bool is_any_ending = false;
  for (const ProcessEntry& process : own_descendants()) {
    // A zombie will be reaped: its parent is killed, too, or is this process.
    refused.erase(process.pid);
    if (process.is_zombie()) continue;
    if (::kill(process.pid, SIGKILL) != 0) {
      if (errno == EPERM) forbidden_.push_back(describe(process));
    } else if (process.state == 'D') {
      stuck_.push_back(describe(process));
    } else {
      is_any_ending = true;
    }
  }
  for (const pid_t pid : refused) forbidden_.push_back("pid " + std::to_string(pid));
  const bool is_any_left = !stuck_.empty() || !forbidden_.empty();
  return is_any_left && !is_any_ending && now() - begun_ >= kPatience;
}

void DescendantPause::stop() {
  // A process that is not stopped yet may fork while the list is read: so repeat until a pass finds
  // none running.
  for (bool found = true; found;) {
    found = false;
    for (const ProcessEntry& process : own_descendants()) {
      if (process.is_zombie() || process.is_stopped() || process.state == 't') continue;
      // Signals each process only once: one in state D stops later.
      if (!stopped_by_us_.emplace(process.pid, process.start_time).second) continue;
      found = ::kill(process.pid, SIGSTOP) == 0 || found;
    }
  }
}

void DescendantPause::go_on() {
  for (const auto& [pid, start_time] : std::exchange(stopped_by_us_, {})) {
    const auto process = read_process(pid);
    if (process && process->start_time == start_time) ::kill(pid, SIGCONT);
  }
}

}  // namespace hv::launcher
