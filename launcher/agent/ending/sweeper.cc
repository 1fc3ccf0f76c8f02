// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/sweeper.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/agent/ranks/python_start.h"
#include "launcher/facts/read_file.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostCgroup = 4096;
constexpr pid_t kInit = 1;

// Init, or a subreaper: the parent that orphans get. /proc does not show which processes are
// subreapers (PR_SET_CHILD_SUBREAPER); these programs are.
bool is_reaper(const ProcessEntry& process) {
  constexpr std::array<std::string_view, 5> kSubreapers{"systemd", "slurmstepd", "conmon",
                                                        "containerd-shim", "dumb-init"};
  return process.pid == kInit ||
         std::any_of(kSubreapers.begin(), kSubreapers.end(),
                     [&](std::string_view name) { return process.name.starts_with(name); });
}

bool is_ours(pid_t pid) {
  struct stat info {};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &info) == 0 &&
         (info.st_uid == ::geteuid());
}

bool is_same(const ProcessEntry& process, const wire::ProcessId& id) {
  return id.pid != 0 && process.pid == static_cast<pid_t>(id.pid) &&
         process.start_time == id.start_time;
}

bool is_there(const wire::ProcessId& id) {
  const auto process = read_process(static_cast<pid_t>(id.pid));
  return process && is_same(*process, id) && !process->is_zombie();
}

}  // namespace

wire::ProcessId process_id(pid_t pid) {
  const auto process = read_process(pid);
  if (!process) return {};
  return {static_cast<std::uint32_t>(pid), process->start_time};
}

std::string cgroup_of(pid_t pid) {
  return read_file("/proc/" + std::to_string(pid) + "/cgroup", kMostCgroup).value_or("");
}

std::vector<ProcessEntry> orphans_since(const std::vector<ProcessEntry>& all,
                                        std::uint64_t start_time) {
  std::set<pid_t> reapers{kInit}, older;  // init may be hidden
  for (const ProcessEntry& process : all) {
    if (is_reaper(process)) reapers.insert(process.pid);
    if (process.start_time < start_time) older.insert(process.pid);
  }
  std::vector<ProcessEntry> orphans;
  for (const ProcessEntry& process : all)
    if (reapers.count(process.parent) && !older.count(process.pid) && !older.count(process.session))
      orphans.push_back(process);
  return orphans;
}

Sweeper::Sweeper(std::string job_id, std::uint32_t host_id, std::set<pid_t> spared,
                 wire::LostAgent lost)
    : job_id_(std::move(job_id)),
      host_id_(host_id),
      entry_("HVRUN_JOB_ID=" + job_id_),
      spared_(std::move(spared)),
      lost_(std::move(lost)),
      were_both_gone_(lost_.agent.pid != 0 && !is_there(lost_.agent) && !is_there(lost_.guard)),
      begun_(now()) {}

bool Sweeper::is_lost_agent(const ProcessEntry& process) const {
  return is_same(process, lost_.agent) || is_same(process, lost_.guard);
}

// Descendants of a match count, too: they may have another environment.
std::vector<ProcessEntry> Sweeper::find() const {
  const std::vector<ProcessEntry> all = read_processes();
  std::vector<ProcessEntry> found;
  std::set<pid_t> matches;
  for (const ProcessEntry& process : all) {
    if (process.is_zombie() || spared_.count(process.pid) || !is_ours(process.pid)) continue;
    if (!is_lost_agent(process) && !environ_holds(environment_of(process.pid), entry_)) continue;
    matches.insert(process.pid);
    found.push_back(process);
  }
  for (const ProcessEntry& process : descendants(all, matches)) {
    if (!process.is_zombie() && !spared_.count(process.pid)) found.push_back(process);
  }
  return found;
}

std::vector<std::string> Sweeper::may_remain() const {
  std::vector<std::string> found;
  if (!were_both_gone_ || lost_.had_cgroup_of_job) return found;
  for (const ProcessEntry& process : orphans_since(read_processes(), lost_.agent.start_time)) {
    if (process.is_zombie() || spared_.count(process.pid)) continue;
    if (!is_ours(process.pid) || cgroup_of(process.pid) != lost_.cgroup) continue;
    // Remote shells are no leftovers, and neither are another job's agents and ranks.
    const bool is_remote_shell = process.name.starts_with("sshd") || process.name == "slurmstepd";
    if (is_remote_shell || process.name.starts_with("hvrun-") ||
        environment_of(process.pid).find("HVRUN_JOB_ID=") != std::string::npos)
      continue;
    found.push_back(describe(process));
  }
  return found;
}

bool Sweeper::step() {
  stuck_.clear();
  const bool groups_gone = remove_cgroups_of(job_id_);
  bool is_any_ending = false;
  for (const ProcessEntry& process : find()) {
    const bool was_killed = ::kill(process.pid, SIGKILL) == 0;
    if (!was_killed && errno == ESRCH) continue;
    if (was_killed && process.state != 'D') {
      is_any_ending = true;
    } else {
      stuck_.push_back(describe(process));
    }
  }
  if (is_any_ending) return false;
  // Waits for a stuck process for a while, and for a cgroup, which becomes empty a little after its
  // last process has ended.
  is_over_ = (groups_gone && stuck_.empty()) || now() - begun_ >= DescendantHunt::kPatience;
  if (is_over_) remove_python_directory(job_id_, host_id_);
  return is_over_;
}

}  // namespace hv::launcher
