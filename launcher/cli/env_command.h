// `hvrun env`: every knob, its value, and where that came from; `hvrun env --algorithms`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/environment.h"

namespace hv::launcher {

// A table for stdout. Throws Error(kUsage) for a malformed knob.
std::string env_table(const Environment& environment);
// Which algorithm carries out which collective: HVRUN_ALGORITHM's wishes, then the table. Throws
// Error(kUsage) for wishes that are none.
std::string env_algorithms(const Environment& environment);

}  // namespace hv::launcher
