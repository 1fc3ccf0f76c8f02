// A request and a site become numbers: nodes, ranks on each, cores and GPUs; or limits in the way.
// SPDX-License-Identifier: Apache-2.0
//
// Pure. Ranks are spread evenly over the fewest nodes that hold them. What neither the request nor
// the site says is left to the scheduler, and limits nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/script/job_request.h"
#include "launcher/script/site.h"

namespace hv::launcher {

constexpr int kMostRanksOfScript = 1 << 20;

struct ScriptPlan {
  Partition partition;
  int ranks = 0;
  int nodes = 0;           // 0: the scheduler spreads the ranks
  int ranks_per_node = 0;  // with nodes; the last node may have fewer
  int cores_per_rank = 0;  // 0: not said
  int gpus_per_rank = 0;
  std::string qos;
  std::string account;  // with what the partition wants behind it
  std::optional<std::chrono::seconds> time;

  int gpus_per_node() const { return gpus_per_rank * ranks_per_node; }
  bool is_uneven() const { return nodes > 0 && nodes * ranks_per_node != ranks; }
};

// Throws Error(kUsage) that names every limit of the site that the request breaks, with what to ask
// for instead.
ScriptPlan plan_script(const JobRequest& request, const Site& site);

}  // namespace hv::launcher
