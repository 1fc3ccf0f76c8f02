// `hvrun env`: every knob, its value, and where that came from; `hvrun env --algorithms`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "src/base/environment.h"
#include "src/base/error.h"

namespace hv::launcher {

// A table for stdout, in which malformed knobs are marked, and what is wrong with the first.
struct EnvTable {
  std::string text;
  std::optional<Error> trouble;
};
EnvTable env_table(const Environment& environment);
// Which algorithm carries out which collective: HVRUN_ALGORITHM's wishes, then the table. Throws
// Error(kUsage) for wishes that are none.
std::string env_algorithms(const Environment& environment);

}  // namespace hv::launcher
