// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/postmortem/memory_kills.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/pid_namespace.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostKept = 1000, kMostMessage = 300;
constexpr char kKilled[] = "Killed process ";

std::optional<std::uint64_t> count_in(const std::string& group) {
  for (const char* name : {"/memory.events", "/memory.oom_control"}) {
    if (const auto text = read_file(group + name)) return oom_kills(*text);
  }
  return std::nullopt;
}

// The nearest limit, which need not be the one that was reached.
std::string describe_limit(const std::vector<std::string>& groups) {
  constexpr std::int64_t kNoLimit = 1ll << 60;  // cgroup v1 reports no limit as such a number
  for (const std::string& group : groups) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto limit = parse_integer(trim(read_file(group + name).value_or("")));
      if (limit && *limit > 0 && *limit < kNoLimit)
        return "limit " + format_bytes(static_cast<std::uint64_t>(*limit)) +
               (group == groups.front() ? "" : " of " + group);
    }
  }
  return "no limit, so that the machine's memory was short";
}

bool is_killed(const ExitStatus& status) {
  constexpr int kKilledChild = 128 + SIGKILL;  // exit code of a shell whose child was killed
  return status.by_signal ? status.code == SIGKILL : status.code == kKilledChild;
}

}  // namespace

std::optional<pid_t> killed_process(std::string_view message) {
  const std::size_t at = message.find(kKilled);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = message.substr(at + sizeof kKilled - 1);
  const auto pid = parse_integer(rest.substr(0, rest.find_first_not_of("0123456789")));
  if (!pid || *pid <= 0 || *pid > INT32_MAX) return std::nullopt;
  return static_cast<pid_t>(*pid);
}

std::optional<std::uint64_t> oom_kills(const std::string& events) {
  const auto count = parse_integer(value_after("oom_kill ", events).value_or(""));
  return count && *count >= 0 ? std::optional(static_cast<std::uint64_t>(*count)) : std::nullopt;
}

void MemoryKills::begin(const std::string& leaf, const std::string& root) {
  const std::string path = root + "/dev/kmsg";
  log_.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log_ || ::lseek(log_.get(), 0, SEEK_END) < 0) {
    log_problem_ = errno_text(errno);
    log_.reset();
  }
  log_has_our_pids_ = log_ && is_in_first_pid_namespace(root);
  if (log_ && !log_has_our_pids_) log_problem_ = "it has other pids than this container";
  groups_ = own_cgroup_folders(root, "memory");
  if (!leaf.empty()) groups_.insert(groups_.begin(), leaf);
  const auto counts = [](const std::string& group) { return count_in(group).has_value(); };
  groups_.erase(groups_.begin(), std::find_if(groups_.begin(), groups_.end(), counts));
  count_before_ = at_last_poll_ = at_poll_before_ = count().value_or(0);
}

void MemoryKills::poll() {
  if (groups_.empty()) return;
  at_poll_before_ = at_last_poll_;
  at_last_poll_ = count().value_or(at_last_poll_);
}

std::optional<std::uint64_t> MemoryKills::count() const {
  return groups_.empty() ? std::nullopt : count_in(groups_.front());
}

void MemoryKills::read_log() {
  if (!log_) return;
  read_kernel_messages(log_.get(), [this](std::string_view line) {
    const std::string_view message = line.substr(line.find(';') + 1);
    const auto pid = killed_process(message);
    if (pid && killed_.size() < kMostKept) killed_[*pid] = printable(message, kMostMessage);
  });
}

std::string MemoryKills::describe_cgroup(std::uint64_t kills) const {
  return "cgroup " + groups_.front() + ": " + describe_limit(groups_) + ", " +
         std::to_string(kills) + " oom_kill since the job began";
}

wire::PostMortem MemoryKills::judge(pid_t pid, const ExitStatus& status) {
  wire::PostMortem found;
  const auto counted = count();
  const std::uint64_t kills = counted && *counted > count_before_ ? *counted - count_before_ : 0;
  if (!is_killed(status) && kills == 0) return found;
  read_log();
  const auto logged = log_has_our_pids_ ? killed_.find(pid) : killed_.end();
  const bool is_logged = logged != killed_.end();
  if (is_logged || kills > 0) {
    // A counter names no process: only the log, or time, can show that it was another one.
    const bool is_recent = counted && *counted > at_poll_before_;
    const bool is_this =
        is_logged || (status.by_signal && is_killed(status) && !log_has_our_pids_ && is_recent);
    found.out_of_memory = is_this ? wire::OutOfMemory::kThisRank : wire::OutOfMemory::kBesideIt;
    if (kills > 0) found.memory = describe_cgroup(kills);
    if (is_logged) found.memory += (kills > 0 ? "; " : "") + logged->second;
  } else if (log_has_our_pids_ || counted) {
    found.out_of_memory = wire::OutOfMemory::kNo;
    found.memory = log_has_our_pids_ ? "the kernel's log does not name it"
                                     : "cgroup " + groups_.front() + " counts no oom_kill";
  } else {
    found.out_of_memory = wire::OutOfMemory::kUnknown;
    found.memory =
        "neither its log (/dev/kmsg: " + log_problem_ + ") nor a count of its cgroup can be read";
  }
  found.memory = printable(found.memory, wire::PostMortem::kMostWords - 3);
  return found;
}

}  // namespace hv::launcher
