// `hvrun env`: every knob, its value, and where that came from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/environment.h"

namespace hv::launcher {

// A table for stdout. Throws Error(kUsage) for a malformed knob.
std::string env_table(const Environment& environment);

}  // namespace hv::launcher
