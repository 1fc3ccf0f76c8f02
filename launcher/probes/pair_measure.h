// Measures latency and bandwidth of the path to another host, over an authenticated connection:
// kExchanges small messages there and back, then as many bytes as can be sent in kTimeToFill.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/clock.h"
#include "src/wire/check.h"

namespace hv::launcher {

// The other end (launcher/agent/probe_listener.h) echoes the first kEchoedBytes, counts the bytes
// after them, and answers the end of the stream with their number, 8 bytes.
constexpr std::size_t kExchangeBytes = 8;
constexpr std::size_t kExchanges = 17;
constexpr std::size_t kEchoedBytes = kExchanges * kExchangeBytes;
constexpr Duration kTimeToFill = std::chrono::milliseconds(400);
constexpr std::uint64_t kMostFill = 64u << 20;

// Blocks. Each step has a deadline.
wire::PairMeasure measure_pair(int socket);

constexpr const char* kMeasure = "--measure";
// hvrun-agent --measure: measures the connection on standard input, and writes a PairMeasure to
// standard output. Returns the exit code.
int run_pair_measure();

}  // namespace hv::launcher
