// What execve takes on this host: how long a program's arguments and environment may be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/wire/messages.h"

namespace hv::launcher {

// In bytes, each string with its terminating zero.
struct ExecLimits {
  std::uint64_t one_string = 0;   // Linux: 32 pages
  std::uint64_t all_strings = 0;  // with 8 bytes for each pointer
};

// The limits of a child of this process. Linux: a quarter of the soft stack limit, between 128 KiB
// and 6 MiB.
ExecLimits exec_limits();

// Why execve would refuse (E2BIG): size, limit, and the variables or arguments that take the most.
// environment: NAME=VALUE.
std::optional<wire::Problem> exec_size_problem(const std::string& program,
                                               const std::vector<std::string>& argv,
                                               const std::vector<std::string>& environment,
                                               const ExecLimits& limits);

}  // namespace hv::launcher
