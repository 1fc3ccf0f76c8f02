// How much memory the ranks of this host can have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace hv::launcher {

// The machine's, or what the cgroups allow where that is less; 0 when neither is known. root: put
// before every path, for tests.
std::uint64_t memory_bytes(const std::string& root = "");

}  // namespace hv::launcher
