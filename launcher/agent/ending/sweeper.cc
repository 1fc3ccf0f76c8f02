// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/sweeper.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/facts/read_file.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostEnvironment = 32u << 20;

bool is_ours(pid_t pid) {
  struct stat info {};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &info) == 0 &&
         (info.st_uid == ::geteuid());
}

}  // namespace

Sweeper::Sweeper(std::string job_id, std::set<pid_t> spared)
    : job_id_(std::move(job_id)),
      entry_("HVRUN_JOB_ID=" + job_id_),
      spared_(std::move(spared)),
      begun_(now()) {}

// Descendants of a match count, too: they may have another environment.
std::vector<ProcessEntry> Sweeper::find() const {
  const std::vector<ProcessEntry> all = read_processes();
  std::vector<ProcessEntry> found;
  std::set<pid_t> matches;
  for (const ProcessEntry& process : all) {
    if (process.is_zombie() || spared_.count(process.pid) || !is_ours(process.pid)) continue;
    const auto environ_text =
        read_file("/proc/" + std::to_string(process.pid) + "/environ", kMostEnvironment);
    if (!environ_text || !environ_holds(*environ_text, entry_)) continue;
    matches.insert(process.pid);
    found.push_back(process);
  }
  for (const ProcessEntry& process : descendants(all, matches)) {
    if (!process.is_zombie() && !spared_.count(process.pid)) found.push_back(process);
  }
  return found;
}

bool Sweeper::step() {
  stuck_.clear();
  const bool groups_gone = remove_cgroups_of(job_id_);
  bool has_hope = false;
  for (const ProcessEntry& process : find()) {
    const bool was_killed = ::kill(process.pid, SIGKILL) == 0;
    if (!was_killed && errno == ESRCH) continue;
    if (was_killed && process.state != 'D') {
      has_hope = true;
    } else {
      stuck_.push_back(describe(process));
    }
  }
  if (has_hope) return false;
  // Waits for a stuck process for a while, and for a cgroup, which becomes empty a little after its
  // last process has ended.
  is_over_ = (groups_gone && stuck_.empty()) || now() - begun_ >= DescendantHunt::kPatience;
  return is_over_;
}

}  // namespace hv::launcher
