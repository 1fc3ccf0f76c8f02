// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/grace.h"

#include <algorithm>

namespace hv::launcher {

Duration grace_of(EndedBy by, std::optional<Duration> stated, std::optional<Duration> time_to_end) {
  constexpr Duration kKept = std::chrono::seconds(1);
  if (by == EndedBy::kLoss) return std::min(stated.value_or(kDefaultGrace), kMostGraceAfterLoss);
  if (stated) return *stated;
  if (by == EndedBy::kJob || !time_to_end) return kDefaultGrace;
  return std::max(*time_to_end - kKept, *time_to_end / 2);
}

}  // namespace hv::launcher
