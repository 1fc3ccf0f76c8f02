// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/training_split.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr std::uint64_t kFewSteps = 20;
constexpr std::uint64_t kShortNanoseconds = 1'000'000'000;
// Of a step: less is the ordinary jitter of ranks that do the same.
constexpr double kNoticeable = 0.1;
// Of a wait: what explains less is not called its cause.
constexpr double kExplains = 0.5;

struct MeasuredRank {
  int rank;
  StepSplit step;
};

bool is_long(const wire::StepTimes& times) {
  return times.steps >= kFewSteps && times.nanoseconds >= kShortNanoseconds;
}

std::vector<MeasuredRank> measured_ranks(const std::vector<wire::StepTimes>& times,
                                         bool long_ones) {
  std::vector<MeasuredRank> ranks;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    if (times[rank].steps > 0 && (!long_ones || is_long(times[rank])))
      ranks.push_back({static_cast<int>(rank), step_of(times[rank])});
  }
  return ranks;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

template <class Part>
double median_of_others(const std::vector<MeasuredRank>& ranks, int slowest, Part part) {
  std::vector<double> values;
  for (const MeasuredRank& one : ranks) {
    if (one.rank != slowest) values.push_back(part(one.step));
  }
  return median(std::move(values));
}

Bound bound_of(const StepSplit& step) {
  if (step.data_s > std::max(step.compute_s, step.exchange_s)) return Bound::kInput;
  return step.exchange_s > step.compute_s ? Bound::kCommunication : Bound::kCompute;
}

// A loader that is read now and then, for validation say, is not that of the steps: unless its
// waits are most of their time.
bool has_seen_data(const wire::StepTimes& times, Bound bound) {
  return bound == Bound::kInput || times.data_waits >= (times.steps + 1) / 2;
}

// The rank that has most left to do is then the one that the others wait for.
double without(Bound bound, const std::vector<MeasuredRank>& ranks, double exchange_s) {
  double longest = 0;
  for (const MeasuredRank& one : ranks) {
    const double data = bound == Bound::kInput ? 0 : one.step.data_s;
    const double compute = bound == Bound::kCompute ? 0 : one.step.compute_s;
    longest = std::max(longest, data + compute);
  }
  return longest + (bound == Bound::kCommunication ? 0 : exchange_s);
}

std::string time_text(double seconds) { return format_duration(Seconds(seconds)); }

std::string share_text(double part_s, double whole_s) {
  char text[16];
  std::snprintf(text, sizeof text, " (%.0f %%)", whole_s > 0 ? 100 * part_s / whole_s : 0);
  return time_text(part_s) + text;
}

std::string rank_text(int rank, const TrainingPlace& place) {
  return "rank " + std::to_string(rank) + " on host " + place.host_of(rank);
}

// Waits that are not those of a loader of every step's are told where they weigh something.
std::string data_text(const TrainingSplit& split) {
  const double whole = split.step.total_s();
  const bool is_told = split.has_seen_data || split.step.data_s > kNoticeable * whole;
  return "data " + (is_told ? share_text(split.step.data_s, whole) : "not seen");
}

// What the line on a step says beyond its parts.
std::string remarks(const TrainingSplit& split) {
  std::string text;
  if (split.bound != Bound::kCompute) {
    text += std::string("; without the wait for ") +
            (split.bound == Bound::kInput ? "data" : "the exchange") + " it would take at best " +
            time_text(split.without_bound_s);
  }
  if (!split.has_seen_data && split.bound != Bound::kCompute)
    text += "; no DataLoader was seen, so that reading data counts as compute";
  if (split.ranks < split.job_ranks)
    text += "; measured on " + std::to_string(split.ranks) + " of " +
            std::to_string(split.job_ranks) + " ranks";
  return text;
}

// Without a loader that was seen computing may be reading: said beside the word.
std::string caveat(const TrainingSplit& split) {
  if (split.has_seen_data || split.bound != Bound::kCompute) return "";
  return ", reading data included, for no DataLoader and no hvrun.data.Prefetcher was seen";
}

std::string split_line(const TrainingSplit& split) {
  const StepSplit& step = split.step;
  const double whole = step.total_s();
  return "hvrun: the training was " + std::string(bound_name(split.bound)) + "-bound" +
         caveat(split) + ": a step took " + time_text(whole) + ": " + data_text(split) +
         ", compute " + share_text(step.compute_s, whole) +
         ", exchange, with waiting for others, " + share_text(step.exchange_s, whole) +
         remarks(split) + "\n";
}

// Among ranks that are even it is chance which one was the slowest.
std::string slowest_line(const TrainingSplit& split, const TrainingPlace& place) {
  if (!split.is_uneven()) return "";
  std::string text = "hvrun: " + rank_text(split.slowest, place) +
                     " was the slowest: the others waited " + time_text(split.others_wait_s) +
                     " a step for it";
  if (const Cause cause = split.late_by(); cause != Cause::kNone) {
    const bool is_data = cause == Cause::kData;
    text += std::string(", as its ") + (is_data ? "wait for data" : "computing") + " is " +
            time_text(is_data ? split.more_data_s : split.more_compute_s) + " longer than theirs";
  }
  return text + "\n";
}

std::string input_advice(const TrainingSplit& split, const TrainingPlace& place) {
  if (split.late_by() == Cause::kData) {
    return "look at what " + rank_text(split.slowest, place) +
           " reads and from where; if it has none yet, more num_workers there, or "
           "hvrun.data.Prefetcher";
  }
  return "more num_workers in the DataLoader, hvrun.data.Prefetcher round it; where both are there "
         "already, faster or cached storage, or less to decode; noise instead of data (--synthetic "
         "in examples/torch) shows the ceiling";
}

std::string communication_advice(const TrainingPlace& place) {
  return std::string(
             "larger batches, backward_passes_per_step=2 or more, "
             "compression=hvd.Compression.bf16") +
         (place.has_several_hosts ? "; a faster network (HVRUN_INTERFACES), or fewer hosts" : "") +
         "; where ranks are slow by turns, batches of equal length";
}

// That computing bounds a training is as it should be.
std::string compute_advice(const TrainingSplit& split, const TrainingPlace& place) {
  switch (split.late_by()) {
    case Cause::kData:
      return input_advice(split, place);
    case Cause::kCompute:
      return "look at what else runs on " + place.host_of(split.slowest) +
             " and at the clocks of its cores and GPUs, or give " +
             rank_text(split.slowest, place) +
             " as much work as the others; a rank that validates or saves checkpoints alone makes "
             "the others wait";
    case Cause::kNone:
      break;
  }
  return split.has_seen_data ? ""
                             : "if there is a loader, put hvrun.data.Prefetcher round it, so that "
                               "its waits are measured, and shorter";
}

std::string advice(const TrainingSplit& split, const TrainingPlace& place) {
  switch (split.bound) {
    case Bound::kInput:
      return input_advice(split, place);
    case Bound::kCommunication:
      return communication_advice(place);
    case Bound::kCompute:
      break;
  }
  return compute_advice(split, place);
}

}  // namespace

const char* bound_name(Bound bound) {
  switch (bound) {
    case Bound::kInput:
      return "input";
    case Bound::kCommunication:
      return "communication";
    case Bound::kCompute:
      break;
  }
  return "compute";
}

StepSplit step_of(const wire::StepTimes& times) {
  const auto part = [&times](std::uint64_t nanoseconds) {
    return 1e-9 * static_cast<double>(nanoseconds) / static_cast<double>(times.steps);
  };
  return {part(times.data_nanoseconds), part(times.compute_nanoseconds()),
          part(times.exchange_nanoseconds)};
}

bool TrainingSplit::is_uneven() const {
  return ranks > 1 && others_wait_s >= kNoticeable * step.total_s();
}

Cause TrainingSplit::late_by() const {
  if (!is_uneven() || std::max(more_data_s, more_compute_s) < kExplains * others_wait_s)
    return Cause::kNone;
  return more_data_s > more_compute_s ? Cause::kData : Cause::kCompute;
}

std::optional<TrainingSplit> split_training(const std::vector<wire::StepTimes>& times) {
  TrainingSplit split;
  split.is_long = std::any_of(times.begin(), times.end(), is_long);
  const std::vector<MeasuredRank> ranks = measured_ranks(times, split.is_long);
  if (ranks.empty()) return std::nullopt;
  const MeasuredRank& slowest =
      *std::min_element(ranks.begin(), ranks.end(), [](const auto& one, const auto& other) {
        return one.step.exchange_s < other.step.exchange_s;
      });
  split.slowest = slowest.rank;
  split.step = slowest.step;
  split.ranks = static_cast<int>(ranks.size());
  split.job_ranks = static_cast<int>(times.size());
  split.bound = bound_of(split.step);
  split.without_bound_s = without(split.bound, ranks, split.step.exchange_s);
  split.has_seen_data = has_seen_data(times[static_cast<std::size_t>(split.slowest)], split.bound);
  if (split.ranks == 1) return split;
  const auto others = [&](auto part) { return median_of_others(ranks, split.slowest, part); };
  const auto exchange = [](const StepSplit& step) { return step.exchange_s; };
  const auto data = [](const StepSplit& step) { return step.data_s; };
  const auto compute = [](const StepSplit& step) { return step.compute_s; };
  split.others_wait_s = others(exchange) - split.step.exchange_s;
  split.more_data_s = split.step.data_s - others(data);
  split.more_compute_s = split.step.compute_s - others(compute);
  return split;
}

std::string training_text(const TrainingSplit& split, const TrainingPlace& place) {
  if (!split.is_long) return "";
  const std::string try_this = advice(split, place);
  return split_line(split) + slowest_line(split, place) +
         (try_this.empty() ? "" : "  try: " + try_this + "\n");
}

}  // namespace hv::launcher
