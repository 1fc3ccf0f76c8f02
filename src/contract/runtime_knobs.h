// The knobs of libhvrun. They are part of the contract: ranks read them, and `hvrun env` shows
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "src/base/knob.h"

namespace hv {

const std::vector<Knob>& runtime_knobs();

// A variable of Horovod's that is accepted and changes nothing here, and why.
struct VainVariable {
  const char* name;
  const char* why;  // one sentence, ends with a full stop
};
const std::vector<VainVariable>& vain_horovod_variables();

}  // namespace hv
