// Folds what many ranks said into one text for each thing that was said: "ranks 0-15: same trace".
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/output/alike.h"

namespace hv::launcher {

struct GatheredText {
  std::vector<int> ranks;  // ascending
  std::vector<std::string> lines;
  bool is_said_by_all = true;  // word for word; else they are those of the first rank
};

// Ranks with equal lines become one group. Groups are in the order of their first rank; ranks
// without any line are left out.
std::vector<GatheredText> gather(
    const std::vector<std::pair<int, std::vector<std::string>>>& lines_by_rank);

// The same, and groups that are alike become one. speakers: one for each of them, in order.
std::vector<GatheredText> gather_alike(
    const std::vector<std::pair<int, std::vector<std::string>>>& lines_by_rank,
    const std::vector<Speaker>& speakers);

}  // namespace hv::launcher
