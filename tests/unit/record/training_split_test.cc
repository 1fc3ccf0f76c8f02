// Tests of launcher/record/training_split.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/training_split.h"

#include <doctest/doctest.h>

#include <random>

using namespace hv::launcher;
using hv::wire::StepTimes;

namespace {

// Milliseconds of a step, of 100 steps.
StepTimes steps_of(double data, double compute, double exchange, std::uint64_t steps = 100) {
  const auto sum = [steps](double ms) {
    return static_cast<std::uint64_t>(1e6 * ms * static_cast<double>(steps));
  };
  return {steps, sum(data) + sum(compute) + sum(exchange), sum(data), sum(exchange),
          data > 0 ? steps : 0};
}

// Ranks that step together: each waits in the exchange for the slowest, and `link` more.
std::vector<StepTimes> together(const std::vector<std::pair<double, double>>& data_and_compute,
                                double link) {
  double longest = 0;
  for (const auto& [data, compute] : data_and_compute) longest = std::max(longest, data + compute);
  std::vector<StepTimes> times;
  for (const auto& [data, compute] : data_and_compute)
    times.push_back(steps_of(data, compute, longest - data - compute + link));
  return times;
}

TrainingSplit split_of(const std::vector<StepTimes>& times) {
  const auto split = split_training(times);
  REQUIRE(split);
  return *split;
}

std::string text_of(const std::vector<StepTimes>& times, bool has_several_hosts = true) {
  return training_text(split_of(times),
                       {[](int rank) { return "node" + std::to_string(rank); }, has_several_hosts});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a slow loader on all ranks bounds by input, and a step without it is told") {
  const auto times = together({{30, 15}, {30, 15}, {30, 15}}, 5);
  const TrainingSplit split = split_of(times);
  CHECK(split.bound == Bound::kInput);
  CHECK(split.without_bound_s == doctest::Approx(0.020));
  CHECK_FALSE(split.is_uneven());
  CHECK(contains(text_of(times), "more num_workers in the DataLoader"));
  CHECK(contains(text_of(times), "where both are there already, faster or cached storage"));
  CHECK(contains(text_of(times), "without the wait for data it would take at best 20 ms\n"));
  CHECK_FALSE(contains(text_of(times), "slowest"));
}

TEST_CASE("ranks that are even name none as the slowest, by however little it is") {
  const auto times = together({{1, 40}, {1, 40.5}, {1, 40.2}}, 5);
  CHECK(split_of(times).slowest == 1);
  CHECK(split_of(times).late_by() == Cause::kNone);
  CHECK_FALSE(contains(text_of(times), "slowest"));
}

TEST_CASE("a wait that neither data nor computing explains is told without a cause") {
  // The others wait 20 ms longer in the exchange, and in longer steps.
  const std::vector<StepTimes> times{steps_of(1, 40, 5), steps_of(1, 40, 25), steps_of(1, 40, 25)};
  CHECK(split_of(times).is_uneven());
  CHECK(split_of(times).late_by() == Cause::kNone);
  const std::string text = text_of(times);
  CHECK(contains(text,
                 "rank 0 on host node0 was the slowest: the others waited 20 ms a step for it\n"));
  CHECK_FALSE(contains(text, "try:"));
}

TEST_CASE("a slow loader on one rank is that rank's, for which the others wait") {
  for (int slow = 0; slow < 3; ++slow) {
    std::vector<std::pair<double, double>> ranks(3, {0.5, 15});
    ranks[static_cast<std::size_t>(slow)].first = 40;
    const auto times = together(ranks, 5);
    const TrainingSplit split = split_of(times);
    CHECK(split.slowest == slow);
    CHECK(split.bound == Bound::kInput);
    CHECK(split.is_uneven());
    CHECK(split.late_by() == Cause::kData);
    CHECK(split.others_wait_s == doctest::Approx(0.0395));
    CHECK(contains(text_of(times),
                   "rank " + std::to_string(slow) + " on host node" + std::to_string(slow) +
                       " was the slowest: the others " +
                       "waited 39.5 ms a step for it, as its wait for data is 39.5 ms " +
                       "longer than theirs\n"));
  }
}

TEST_CASE("a slow link bounds by communication, and the network is named where there is one") {
  const auto times = together({{1, 15}, {1, 14}}, 60);
  const TrainingSplit split = split_of(times);
  CHECK(split.bound == Bound::kCommunication);
  CHECK(split.without_bound_s == doctest::Approx(0.016));
  CHECK_FALSE(split.is_uneven());
  CHECK(contains(text_of(times), "exchange, with waiting for others, 60 ms (79 %)"));
  CHECK(contains(text_of(times), "backward_passes_per_step"));
  CHECK(contains(text_of(times), "slow by turns, batches of equal length\n"));
  CHECK(contains(text_of(times), "a faster network"));
  CHECK_FALSE(contains(text_of(times, false), "network"));
}

TEST_CASE("a slow model is as it should be, and nothing is advised") {
  const auto times = together({{1, 80}, {1, 81}}, 5);
  CHECK(split_of(times).bound == Bound::kCompute);
  CHECK(contains(text_of(times), "compute-bound: a step took 87 ms"));
  CHECK_FALSE(contains(text_of(times), "try:"));
}

TEST_CASE("a rank that computes longer is named, and its host") {
  const auto times = together({{1, 20}, {1, 20}, {1, 60}, {1, 20}}, 5);
  const TrainingSplit split = split_of(times);
  CHECK(split.slowest == 2);
  CHECK(split.bound == Bound::kCompute);
  CHECK(split.is_uneven());
  CHECK(split.late_by() == Cause::kCompute);
  CHECK(split.more_compute_s == doctest::Approx(0.040));
  CHECK(contains(text_of(times), "try: look at what else runs on node2"));
  CHECK(contains(text_of(times), "saves checkpoints alone"));
}

TEST_CASE("a rank may be late by its data though its computing takes longer still") {
  const auto times = together({{1, 40}, {20, 40}}, 2);
  CHECK(split_of(times).bound == Bound::kCompute);
  CHECK(split_of(times).late_by() == Cause::kData);
  CHECK(contains(text_of(times), "try: look at what rank 1 on host node1 reads"));
  CHECK(contains(text_of(times), "if it has none yet, more num_workers there"));
}

TEST_CASE("one rank is bound by data or computing, and is slower than nobody") {
  CHECK(split_of({steps_of(30, 10, 0)}).bound == Bound::kInput);
  CHECK(split_of({steps_of(10, 30, 0)}).bound == Bound::kCompute);
  CHECK_FALSE(contains(text_of({steps_of(30, 10, 0)}), "slowest"));
}

TEST_CASE("without a loader that was seen, computing is not praised for what it may not be") {
  const std::string text = text_of({steps_of(0, 50, 1), steps_of(0, 50, 1)});
  CHECK(
      contains(text,
               "the training was compute-bound, reading data included, for no DataLoader and no "
               "hvrun.data.Prefetcher was seen: a step took 51 ms: data not seen, compute 50 ms"));
  CHECK(contains(text, "try: if there is a loader, put hvrun.data.Prefetcher round it"));
  const std::string slow_link = text_of({steps_of(0, 5, 50), steps_of(0, 5, 50)});
  CHECK(contains(slow_link, "data not seen, compute 5 ms"));
  CHECK(contains(slow_link, "communication-bound: a step took 55 ms"));
  CHECK(contains(slow_link, "; no DataLoader was seen, so that reading data counts as compute"));
}

TEST_CASE("a loader that is read now and then is not that of the steps") {
  StepTimes times = steps_of(1, 50, 1);
  times.data_waits = 49;
  CHECK_FALSE(split_of({times}).has_seen_data);
  CHECK(contains(text_of({times}), "data not seen"));
  times.data_waits = 50;
  CHECK(split_of({times}).has_seen_data);
  // But where its waits weigh something they are told.
  times = steps_of(30, 50, 1);
  times.data_waits = 5;
  CHECK(contains(text_of({times}), "data 30 ms (37 %)"));
  times = steps_of(60, 50, 1);
  times.data_waits = 5;
  CHECK(split_of({times}).has_seen_data);
}

TEST_CASE("ranks that measured nothing, or little beside others, do not count") {
  CHECK_FALSE(split_training({}));
  CHECK_FALSE(split_training({{}, {}}));
  std::vector<StepTimes> times = together({{30, 15}, {30, 15}}, 5);
  times.push_back({});
  times.push_back(steps_of(0, 0.1, 0, 3));
  CHECK(split_of(times).ranks == 2);
  CHECK(split_of(times).slowest < 2);
  CHECK(contains(text_of(times), "; measured on 2 of 4 ranks\n"));
}

TEST_CASE("few steps, or a short time, are split but not told") {
  for (const StepTimes& times : {steps_of(0, 1000, 0, 19), steps_of(0, 9.9, 0, 100)}) {
    CHECK_FALSE(split_of({times}).is_long);
    CHECK(text_of({times}) == "");
  }
  for (const StepTimes& times : {steps_of(0, 1000, 0, 20), steps_of(0, 10, 0, 100)})
    CHECK(text_of({times}) != "");
}

TEST_CASE("whatever ranks measure, the split is one of its figures") {
  std::mt19937 random(20261124);
  for (int round = 0; round < 500; ++round) {
    std::vector<StepTimes> times(1 + random() % 6);
    for (StepTimes& one : times) {
      if (random() % 5 != 0)
        one = steps_of(random() % 50, random() % 50, random() % 50, 1 + random() % 99);
      CHECK(one.is_plausible());
    }
    const auto split = split_training(times);
    if (!split) continue;
    const StepTimes& slowest = times[static_cast<std::size_t>(split->slowest)];
    CHECK(slowest.steps > 0);
    CHECK(split->step.total_s() == doctest::Approx(step_of(slowest).total_s()));
    CHECK(split->others_wait_s >= 0);
    const double bound = split->bound == Bound::kInput           ? split->step.data_s
                         : split->bound == Bound::kCommunication ? split->step.exchange_s
                                                                 : split->step.compute_s;
    for (const double part : {split->step.data_s, split->step.compute_s, split->step.exchange_s})
      CHECK(bound >= part);
    // Steps of no length at all are no reason to divide by it.
    CHECK(training_text(*split, {[](int) { return "h"; }, false}).find("nan") == std::string::npos);
  }
}

TEST_CASE("times that cannot be are not plausible") {
  CHECK(StepTimes{}.is_plausible());
  CHECK(StepTimes{1, 10, 4, 6, 1}.is_plausible());
  for (const StepTimes& times :
       {StepTimes{0, 1, 0, 0, 0}, StepTimes{0, 0, 0, 0, 1}, StepTimes{1, 10, 11, 0, 1},
        StepTimes{1, 10, 5, 6, 1}, StepTimes{1, 10, 1, UINT64_MAX, 1}, StepTimes{1, 10, 1, 0, 0},
        StepTimes{1, UINT64_MAX, 0, 0, 0}, StepTimes{1, 10, UINT64_MAX, 2, 1}})
    CHECK_FALSE(times.is_plausible());
}
