// How long is the way to another host, and how wide? Over a connection whose ends have proved who
// they are: kExchanges small messages there and back, then as much as goes in a moment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/clock.h"
#include "src/wire/check.h"

namespace hv::launcher {

// The other end sends back the first kEchoedBytes that it gets, then counts what comes, and at its
// end answers with the number, 8 bytes.
constexpr std::size_t kExchangeBytes = 8;
constexpr std::size_t kExchanges = 17;
constexpr std::size_t kEchoedBytes = kExchanges * kExchangeBytes;
constexpr Duration kTimeToFill = std::chrono::milliseconds(400);
constexpr std::uint64_t kMostFill = 64u << 20;

// Blocking.
wire::PairMeasure measure_pair(int socket);

constexpr const char* kMeasure = "--measure";
// hvrun-agent --measure: the connection on standard input, the measure on standard output.
int run_pair_measure();

}  // namespace hv::launcher
