// A check as programs read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/check/check_input.h"
#include "launcher/check/finding.h"

namespace hv::launcher {

// One object, described in hvrun-check(1): version, can_start, seconds, hosts with their topology
// and what they have told, the ways between them, findings, not_probed and, where there is one, the
// plan. No secret is in it.
std::string report_as_json(const CheckInput& input, const CheckReport& report);

}  // namespace hv::launcher
