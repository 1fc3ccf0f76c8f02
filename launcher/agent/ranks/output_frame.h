// An Output message as a whole frame, built with one copy of its bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hv::launcher {

std::string output_frame(std::uint32_t rank, std::uint8_t stream, std::int64_t wall_clock_ns,
                         std::string_view bytes);
// The frame that reports the end of the stream.
std::string output_end_frame(std::uint32_t rank, std::uint8_t stream, std::int64_t wall_clock_ns);

}  // namespace hv::launcher
