// Memory that ranks could have now, and what /dev/shm holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void look_at_memory(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// root: put before every path, for tests.
wire::MemoryFacts memory_facts(const std::string& root);

}  // namespace hv::launcher
