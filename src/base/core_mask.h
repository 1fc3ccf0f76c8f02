// CoreMask: a set of a machine's cores, one bit each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace hv {

// Core c is bit c % 64 of word c / 64; words that are missing at the end are 0.
using CoreMask = std::vector<std::uint64_t>;

// No machine numbers a core so high.
constexpr std::uint32_t kMostCores = 65536;

// Those that the calling thread may run on; empty: the system does not tell.
CoreMask own_cores();
int count_cores(const CoreMask& mask);
CoreMask mask_of(const std::vector<std::uint32_t>& cores);
// Has the calling thread run on them alone; false: errno says why not. Async-signal-safe.
bool run_on(const CoreMask& mask);
// Adds those of `more`.
void unite(CoreMask* mask, const CoreMask& more);

}  // namespace hv
