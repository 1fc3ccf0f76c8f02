// Exchange over TCP, all through rank 0: for the tasks of a Slurm step that has neither PMI nor
// PMIx.
// SPDX-License-Identifier: Apache-2.0
//
// Rank 0 listens at one of some ports that all know; the others try them until somebody there has
// the key. The key comes to them by munge, or all have it from a file (StarKey). Then each rank
// greets rank 0 as an agent greets hvrun (agent_greeting.h), and both directions are sealed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/net/address.h"
#include "src/rendezvous/exchange.h"
#include "src/wire/authentication.h"

namespace hv {

// What a connection of a star carries once it is opened: a size and so many bytes, again and again;
// and what rank 0 gives back to all. Pure.
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

// How both ends of a fresh connection come to have the same key; each returns when its socket has
// said what there is to say, at most at the deadline.
struct StarKey {
  using Agree = std::function<Status(int socket, TimePoint deadline, JobKey* key)>;
  Agree of_first;  // rank 0's
  Agree of_other;
};

struct StarTerms {
  int rank = 0;
  int size = 1;
  std::string name;                  // of the step, alike on all ranks: what proofs are bound to;
                                     // at most 200 letters
  std::vector<std::uint16_t> ports;  // in the order in which they are tried
  // Where rank 0's host is reached; asked again at each try.
  std::function<std::vector<std::string>()> first_host;
};

// Blocks until all have met, at most limits.timeout.
Status open_star(const StarTerms& terms, const StarKey& key, const WaitLimits& limits,
                 std::unique_ptr<Exchange>* exchange);

}  // namespace hv
