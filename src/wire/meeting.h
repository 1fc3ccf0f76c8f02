// What ranks wait in for others, and how one that has ended stands in its MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace hv::wire {

// hvrun_init; and MPI, where hvrun has wired it: before its first barrier or fence is over, or
// later.
enum class Meeting : std::uint8_t { kHvrunInit, kMpiInit, kMpi };
constexpr std::size_t kMeetings = 3;

enum class MpiEnd : std::uint8_t { kInOrder, kNotBegun, kNotFinalized };

}  // namespace hv::wire
