// How every program times a collective: the same repetitions, the same clock, the same check.
// SPDX-License-Identifier: Apache-2.0
//
// A repetition's time is that of the slowest rank. Short calls are timed many at once, since a
// clock's reading costs as much as they do; a broadcast's root goes round, so that each call waits
// for the one before. In an exchange each call writes its tensor first, within the time: what is
// sent again unwritten lies in the receiver's cache already, where a bare MPI reads it several
// times as fast as what a program has just made.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "bench/ranks/options.h"
#include "src/base/clock.h"

namespace bench {

// What a program times with; each is called by all ranks.
struct Calls {
  std::function<void()> barrier;
  std::function<void(const Operation&, const float* input, float* output, int root)> run;
  // Replaces each by the greatest that any rank has there.
  std::function<void(double* values, std::size_t count)> take_greatest;
  std::function<void(int code)> exit;
  Memory memory{};
};

constexpr int kMostRepetitions = 200, kLeastRepetitions = 3, kMostInBatch = 50;
constexpr double kBatchSeconds = 500e-6, kSettleSeconds = 0.5;

// Seconds of each repetition of batch calls, of one call.
inline std::vector<double> repeat(const Calls& calls, int repetitions, int batch,
                                  const std::function<void()>& prepare,
                                  const std::function<void(int)>& call) {
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    prepare();
    calls.barrier();
    const hv::TimePoint start = hv::now();
    for (int k = 0; k < batch; ++k) call(i * batch + k);
    seconds.push_back(hv::seconds_since(start) / batch);
  }
  calls.take_greatest(seconds.data(), seconds.size());
  return seconds;
}

// Warms up, then repeats for about the budget; on all ranks alike. It stops early where the first
// calls were faster than most: all ranks have the same times, so they stop at the same one.
inline std::vector<double> repeat_for(const Calls& calls, double budget_seconds,
                                      const std::function<void()>& prepare,
                                      const std::function<void(int)>& call) {
  const std::vector<double> first = repeat(calls, 2, 1, prepare, call);
  const double one = std::max(std::min(first[0], first[1]), 1e-7);
  const int batch = std::clamp(static_cast<int>(kBatchSeconds / one), 1, kMostInBatch);
  const int repetitions = std::clamp(static_cast<int>(budget_seconds / (one * batch)),
                                     kLeastRepetitions, kMostRepetitions);
  const int some = std::max(repetitions / 8, kLeastRepetitions);
  if (one < budget_seconds) repeat(calls, std::min(some, 20), batch, prepare, call);
  std::vector<double> all;
  for (double spent = 0; static_cast<int>(all.size()) < repetitions && spent < 2 * budget_seconds;)
    for (const double seconds : repeat(calls, some, batch, prepare, call)) {
      all.push_back(seconds);
      spent += seconds * batch;
    }
  return all;
}

// Times one operation and checks one more call of it.
inline std::vector<double> time_operation(const Calls& calls, const Options& options,
                                          const Operation& operation) {
  Buffer input(operation.input_count(), 0, calls.memory);
  Buffer separate(operation.output_count(), 0, calls.memory);
  const bool is_in_place = operation.name == "broadcast" || options.in_place;
  Buffer& output = is_in_place ? input : separate;
  operation.fill(input);
  const auto prepare = [&] {
    if (options.in_place) operation.fill(input);  // sums would grow beyond all bounds
  };
  const bool is_fresh = operation.name == "exchange";
  const auto seconds = repeat_for(calls, options.budget_seconds, prepare, [&](int number) {
    if (is_fresh) input.fill(operation.input_at(0));
    calls.run(operation, input.data(), output.data(), number % operation.ranks);
  });
  if (options.copy) return seconds;
  const int root = operation.ranks - 1;
  operation.fill(input);
  if (!is_in_place) output.fill(0);
  calls.run(operation, input.data(), output.data(), root);
  if (!operation.is_right(output, root)) {
    std::fprintf(stderr, "rank %d: wrong result of %s of %zu elements\n", operation.rank,
                 operation.name.c_str(), operation.whole);
    calls.exit(1);
  }
  return seconds;
}

// Calls until the system has spread the ranks over the cores: ranks that share cores and never
// sleep can stand three on one core and one on the other for so long.
inline void settle(const Calls& calls) {
  for (double spent = 0; spent < kSettleSeconds;) {
    const hv::TimePoint start = hv::now();
    for (int i = 0; i < kMostInBatch; ++i) calls.barrier();
    double seconds = hv::seconds_since(start);
    calls.take_greatest(&seconds, 1);
    spent += seconds;
  }
}

// Every operation and size that the options name; rank 0 prints.
inline void time_all(const Calls& calls, const Options& options, const char* who, int ranks,
                     int rank) {
  settle(calls);
  for (const std::string& name : options.operations)
    for (const std::size_t bytes : options.sizes) {
      const auto seconds = time_operation(calls, options, Operation(name, bytes, ranks, rank));
      if (rank == 0) print(options, who, options.copy ? "copy" : name, ranks, bytes, seconds);
    }
}

}  // namespace bench
