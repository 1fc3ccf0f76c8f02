// How many ports of HVRUN_PORT_RANGE somebody has already.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void look_at_ports(const wire::CheckRequest& request, const Environment& environment,
                   wire::CheckReply* reply);

}  // namespace hv::launcher
