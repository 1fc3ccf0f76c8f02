// What a connection of a star carries once it is opened: a size and so many bytes, again and again;
// and what rank 0 gives back to all. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hv {

// What stands before the bytes of a frame.
std::string frame_head(std::string_view bytes);

enum class FrameState { kWhole, kPartial, kTooLong };

// Takes the first frame off what has come, wiping what it leaves behind. most: bytes that it may
// have.
FrameState take_frame(std::string* come, std::uint64_t most, std::string* bytes);

// What each rank has said, by rank.
std::string encode_gathered(std::vector<std::string> all);
// False: it is no such answer, or one of another number of ranks.
bool decode_gathered(std::string_view bytes, std::size_t ranks, std::vector<std::string>* all);

}  // namespace hv
