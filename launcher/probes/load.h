// How busy this host's cores are, and how fast they may run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "launcher/facts/process_table.h"
#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

// Blocks for half a second.
void inspect_load(const wire::CheckRequest& request, const Environment& environment,
                  wire::CheckReply* reply);

struct LoadSample {
  std::uint32_t cores = 0;
  std::uint64_t busy_ticks = 0;  // sum of all cores
  std::map<pid_t, ProcessEntry> processes;
};
// root: prefix of every path, for tests.
LoadSample load_sample(const std::string& root);
// Leaves out hvrun's own programs and children of its probes. ticks: of one core between the
// samples.
wire::LoadFacts load_between(const LoadSample& before, const LoadSample& after, double ticks,
                             const std::string& root);
// The slowest frequency governor among the CPUs; "" where none is reported.
std::string slowest_governor(const std::string& root);

}  // namespace hv::launcher
