// Builds an Output or Result message as a whole frame, with one copy of its bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hv::launcher {

// A stream of a rank towards hvrun. kStdout and kStderr are sent as Output, kResults as Result.
enum class RankStream : std::uint8_t { kStdout = 1, kStderr = 2, kResults };

std::string output_frame(std::uint32_t rank, RankStream stream, std::int64_t wall_clock_ns,
                         std::string_view bytes);
// The frame that reports the end of the stream.
std::string output_end_frame(std::uint32_t rank, RankStream stream, std::int64_t wall_clock_ns);

}  // namespace hv::launcher
