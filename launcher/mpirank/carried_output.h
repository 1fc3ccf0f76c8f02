// A rank's output on its way through Open MPI's mpirun, which loses bytes of many short lines.
// SPDX-License-Identifier: Apache-2.0
//
// mpirun --tag-output reads at most 4 KiB at a time, puts "[1,3]<stdout>:" before them and behind
// each newline, and cuts off what then exceeds 8 KiB. So hvrun-agent stands between mpirun and the
// rank, and writes the rank's bytes as lines of 1,000 or so, whatever their own lines are. In them
// newlines, '[' (which begins a tag) and a few others are two bytes, so that tags stand out.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/mpirank/mpirun_rank.h"
#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// Appended to `out`, with the newlines of mpirun's lines. Pure.
void encode_carried(std::string_view bytes, std::string* out);

// The reverse, for one stream, in pieces that end anywhere. Pure.
class CarriedDecoder {
 public:
  void decode(std::string_view text, std::string* bytes);

 private:
  bool is_escaped_ = false;
};

constexpr const char* kCarryOutput = "--carry-output";
constexpr Duration kTimeForChildren = std::chrono::milliseconds(500);

constexpr const char* kRunByHand = "run it by hand on that host";

// Runs the program as the rank that is described, and carries its output, to its end. Ends as it
// does, by the same code or signal; returns where it could not be started. time_for_children: how
// long after its end they may still write, who may hold its streams open for ever.
wire::Problem carry_output(const std::vector<std::string>& program, const MpirunRank& rank,
                           Duration time_for_children = kTimeForChildren);

// On stderr, as if the program had written it.
void carry_own_words(const std::string& words);

}  // namespace hv::launcher
