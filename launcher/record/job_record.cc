// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/job_record.h"

#include <unistd.h>

#include <array>

#include "launcher/facts/process_table.h"
#include "launcher/facts/read_file.h"
#include "src/base/boot_id.h"

namespace hv::launcher {
namespace {

std::string namespace_of(const std::string& root) {
  std::array<char, 100> target{};
  const ssize_t got =
      ::readlink((root + "/proc/self/ns/pid").c_str(), target.data(), target.size());
  return got > 0 ? std::string(target.data(), static_cast<std::size_t>(got)) : "";
}

// When the process began, in clock ticks since the boot; 0: it has ended, or that is unknown.
std::uint64_t start_of(const std::string& pid, const std::string& root) {
  const auto stat = read_file(root + "/proc/" + pid + "/stat", 4096);
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
  std::vector<wire::StepTimes> times;
  for (const RecordedRank& rank : ranks) times.push_back(rank.step_times);
  return split_training(times);
}

RunningProcess this_process(const std::string& root) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {};
  return {static_cast<std::uint32_t>(::getpid()), name.data(), boot_id(root), namespace_of(root),
          start_of("self", root)};
}

StillRuns still_runs(const RunningProcess& process, const std::string& root) {
  const bool is_here = !process.boot_id.empty() && process.boot_id == boot_id(root) &&
                       process.pid_namespace == namespace_of(root);
  if (!is_here || process.pid == 0 || process.start_ticks == 0) return StillRuns::kCannotTell;
  const bool is_it = start_of(std::to_string(process.pid), root) == process.start_ticks;
  return is_it ? StillRuns::kYes : StillRuns::kNo;
}

}  // namespace hv::launcher
