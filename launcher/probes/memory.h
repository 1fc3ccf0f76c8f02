// The memory that ranks can get now, and the capacity of /dev/shm.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void inspect_memory(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// root: prefix of every path, for tests.
wire::MemoryFacts memory_facts(const std::string& root);

}  // namespace hv::launcher
