// A pseudo-terminal for one rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

struct Pty {
  UniqueFd master;  // non-blocking
  UniqueFd slave;
};

Status open_pty(std::uint32_t columns, std::uint32_t rows, Pty* pty);

}  // namespace hv::launcher
