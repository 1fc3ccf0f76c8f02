// Programs that only start another one: numactl, nice, env ... Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "src/wire/messages.h"

namespace hv::launcher {

// What "numactl --localalloc python3 train.py" comes to: "python3 train.py", with env's assignments
// in its environment. none: the program is no wrapper that is known, or has options that are not.
std::optional<wire::Program> wrapped_program(const wire::Program& program);

}  // namespace hv::launcher
