// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/job_record.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "launcher/facts/process_table.h"
#include "launcher/facts/read_file.h"
#include "src/base/boot_id.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

std::string pid_namespace() {
  std::array<char, 100> target{};
  const ssize_t got = ::readlink("/proc/self/ns/pid", target.data(), target.size());
  return got > 0 ? std::string(target.data(), static_cast<std::size_t>(got)) : "";
}

// Start of a process, in clock ticks since the boot; 0: it has ended, or its start is unknown.
std::uint64_t start_of(const std::string& pid) {
  const auto stat = read_file("/proc/" + pid + "/stat", 4096);
  const auto process = stat ? parse_stat(*stat) : std::nullopt;
  return process && !process->is_zombie() ? process->start_time : 0;
}

}  // namespace

const std::string& JobRecord::host_of(int rank) const {
  return hosts[static_cast<std::size_t>(ranks[static_cast<std::size_t>(rank)].host)].name;
}

const ExitStatus* JobRecord::end_of(int rank) const {
  const auto& end = ranks[static_cast<std::size_t>(rank)].end;
  return end ? &*end : nullptr;
}

bool JobRecord::failed(int rank) const {
  const ExitStatus* end = end_of(rank);
  return end && !end->clean();
}

std::vector<int> JobRecord::ranks_on(int host) const {
  std::vector<int> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].host == host) found.push_back(static_cast<int>(rank));
  return found;
}

std::optional<TrainingSplit> JobRecord::training() const {
  std::vector<wire::StepTimes> by_rank;
  for (const RecordedRank& rank : ranks) by_rank.push_back(rank.step_times);
  return split_training(by_rank);
}

std::optional<JobProgress> JobRecord::progress() const {
  std::optional<JobProgress> progress;
  for (const RecordedRank& rank : ranks) {
    const std::uint64_t steps = rank.step_times.steps;
    if (steps == 0) continue;
    if (!progress) progress = JobProgress{.steps = steps};
    progress->steps = std::min(progress->steps, steps);
  }
  const std::optional<TrainingSplit> split = training();
  if (progress && split && split->is_long && split->is_uneven()) {
    progress->slowest_rank = split->slowest;
    progress->others_wait_s = split->others_wait_s;
  }
  return progress;
}

RunningProcess this_process() {
  return {static_cast<std::uint32_t>(::getpid()), own_hostname(), boot_id(), pid_namespace(),
          start_of("self")};
}

StillRuns still_runs(const RunningProcess& process) {
  const bool is_here = !process.boot_id.empty() && process.boot_id == boot_id() &&
                       process.pid_namespace == pid_namespace();
  if (!is_here || process.pid == 0 || process.start_ticks == 0) return StillRuns::kCannotTell;
  const bool is_it = start_of(std::to_string(process.pid)) == process.start_ticks;
  return is_it ? StillRuns::kYes : StillRuns::kNo;
}

}  // namespace hv::launcher
