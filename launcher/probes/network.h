// Interfaces with their MTU and speed, and the ports of RDMA adapters, up or not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void look_at_network(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

// root: put before every path, for tests.
wire::NetworkFacts read_network(const std::string& root = "");

}  // namespace hv::launcher
