// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/job_record.h"

namespace hv::launcher {

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

}  // namespace hv::launcher
