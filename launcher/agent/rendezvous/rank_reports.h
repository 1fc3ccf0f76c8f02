// RankReports: what the ranks of this host have reported of themselves, for the report of their
// end. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "src/wire/step_times.h"

namespace hv::launcher {

class RankReports {
 public:
  // Keeps the longest training of a rank, which may run several programs or trainings: a short one
  // at the end (a test, say) must not hide it. False: no training has such times.
  [[nodiscard]] bool keep_steps(std::uint32_t rank, const wire::StepTimes& times) {
    if (!times.is_plausible()) return false;
    wire::StepTimes& kept = step_times_[rank];
    if (times.nanoseconds >= kept.nanoseconds) kept = times;
    return true;
  }
  // Zero steps where the rank has reported none.
  wire::StepTimes step_times(std::uint32_t rank) const {
    const auto found = step_times_.find(rank);
    return found == step_times_.end() ? wire::StepTimes{} : found->second;
  }
  // Of the ranks that have reported any.
  const std::map<std::uint32_t, wire::StepTimes>& step_times() const { return step_times_; }

  void note_joined(std::uint32_t rank) { left_ns_.erase(rank); }
  void note_left(std::uint32_t rank, std::int64_t wall_clock_ns) { left_ns_[rank] = wall_clock_ns; }
  // Ranks that have left the job and not joined again, and when by the wall clock.
  const std::map<std::uint32_t, std::int64_t>& left_ns() const { return left_ns_; }

 private:
  std::map<std::uint32_t, wire::StepTimes> step_times_;
  std::map<std::uint32_t, std::int64_t> left_ns_;
};

}  // namespace hv::launcher
