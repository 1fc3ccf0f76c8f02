// The knobs of libhvrun. They are part of the contract: ranks read them, and `hvrun env` shows
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "src/base/knob.h"

namespace hv {

const std::vector<Knob>& runtime_knobs();

}  // namespace hv
