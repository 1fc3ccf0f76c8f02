// What keeps this host's cores busy, and how fast they may run.
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

// Takes half a second.
void look_at_load(const wire::CheckRequest& request, const Environment& environment,
                  wire::CheckReply* reply);

struct LoadSample {
  std::uint32_t cores = 0;
  std::uint64_t busy_ticks = 0;  // of all cores together
  std::map<pid_t, ProcessEntry> processes;
};
// root: put before every path, for tests.
LoadSample load_sample(const std::string& root);
// By others than hvrun's programs and what its probes run. ticks: that one core has had between.
wire::LoadFacts load_between(const LoadSample& before, const LoadSample& after, double ticks,
                             const std::string& root);
// The slowest of those that the CPUs have; "" where none is told.
std::string slowest_governor(const std::string& root);

}  // namespace hv::launcher
