// Wrappers: programs that only start another program, such as numactl, nice and env. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "src/wire/messages.h"

namespace hv::launcher {

// The program that a wrapper starts: "python3 train.py" of "numactl --localalloc python3 train.py",
// with env's assignments in its environment. Nothing: no known wrapper, or an unknown option.
std::optional<wire::Program> wrapped_program(const wire::Program& program);

}  // namespace hv::launcher
