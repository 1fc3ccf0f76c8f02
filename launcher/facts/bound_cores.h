// Ranks of other hvrun jobs that are bound to some of this job's cores, from /proc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/core_mask.h"

namespace hv::launcher {

// "ranks of another hvrun job are bound to cores 0-3, too (such as pid 12)"; empty: none that can
// be read. Processes of other users cannot. cores: of this job's ranks; job_id: this job's. A
// process that may run on all of the machine's usable cores is bound to none.
std::string describe_shared_cores(const std::string& job_id, const CoreMask& cores,
                                  const CoreMask& usable, const std::string& proc = "/proc");

}  // namespace hv::launcher
