// What bounded a training, by what its ranks have measured of their steps. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that step together wait for each other in the exchange. So the one that waits least there
// is the slowest: the others wait for it, and its step is how long a step takes. The largest of
// that step's three shares bounds the job. What the others wait longer than it is the price of its
// being slow, and what it has more of than they, data or computing, is why. Where ranks are
// slow by turns no rank stands out, and all wait in the exchange: its share holds that, too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/wire/step_times.h"

namespace hv::launcher {

enum class Bound { kInput, kCommunication, kCompute };
enum class Cause { kNone, kData, kCompute };

// Of one step, on average.
struct StepSplit {
  double data_s = 0;
  double compute_s = 0;
  double exchange_s = 0;
  double total_s() const { return data_s + compute_s + exchange_s; }
};

struct TrainingSplit {
  Bound bound = Bound::kCompute;
  int slowest = 0;             // rank
  StepSplit step{};            // of that rank
  double without_bound_s = 0;  // a step without any rank's part of that kind
  int ranks = 1;               // that were measured
  int job_ranks = 1;           // that there are
  double others_wait_s = 0;    // a step, for the slowest: the median of what they wait longer
  double more_data_s = 0;      // than the others' median, of the slowest; may be below 0
  double more_compute_s = 0;
  bool has_seen_data = false;  // of that rank: a loader whose waits are the data of most steps
  bool is_long = false;        // enough steps and time to be told to people

  // Waiting for one rank costs the others a noticeable part of a step.
  bool is_uneven() const;
  // Why: what it has more of than the others explains half of their wait at least.
  Cause late_by() const;
};

// times: by rank. Where some have measured enough, they alone count. nullopt: none has any.
std::optional<TrainingSplit> split_training(const std::vector<wire::StepTimes>& times);
StepSplit step_of(const wire::StepTimes& times);

// "input", "communication" or "compute".
const char* bound_name(Bound bound);

struct TrainingPlace {
  std::function<std::string(int rank)> host_of;
  bool has_several_hosts = false;
};
// What people are told: lines that each end in a newline; "" where little was measured.
std::string training_text(const TrainingSplit& split, const TrainingPlace& place);

}  // namespace hv::launcher
