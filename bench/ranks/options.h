// What the programs that time collectives share: their options, and the form of a result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/ranks/operation.h"

namespace bench {

struct Options {
  int ranks = 2;
  std::vector<std::string> operations = {"allreduce"};
  std::vector<std::size_t> sizes = {4, 1024, 16384, 65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  bool json = false;
  bool pin = false;
  bool in_place = false;
  bool copy = false;
  bool shared = false;  // tensors lie in memory from hvrun_alloc
  bool init = false;
  std::string algorithms;  // as HVRUN_ALGORITHM, for the collective layer alone
  std::string gradients;   // file with a list of them
  double stalled = 0;      // seconds that another process set stands still
  std::size_t slot_bytes = 0;
  double budget_seconds = 0.25;  // of each size, about
};

inline std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

[[noreturn]] inline void usage(const char* program) {
  std::fprintf(stderr,
               "usage: %s [--ranks N] [--op NAME,...] [--sizes B,...] [--json] [--pin] "
               "[--in-place] [--shared] [--copy] [--init] [--gradients FILE] [--stalled SECONDS] "
               "[--slot BYTES] [--budget SECONDS] [--algorithms WORDS]\n",
               program);
  std::exit(2);
}

inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (i + 1 >= argc) usage(argv[0]);
      return std::string(argv[++i]);
    };
    if (word == "--ranks")
      options.ranks = std::atoi(value().c_str());
    else if (word == "--json")
      options.json = true;
    else if (word == "--pin")
      options.pin = true;
    else if (word == "--in-place")
      options.in_place = true;
    else if (word == "--copy")
      options.copy = true;
    else if (word == "--shared")
      options.shared = true;
    else if (word == "--init")
      options.init = true;
    else if (word == "--gradients")
      options.gradients = value();
    else if (word == "--algorithms")
      options.algorithms = value();
    else if (word == "--stalled")
      options.stalled = std::atof(value().c_str());
    else if (word == "--slot")
      options.slot_bytes = std::strtoull(value().c_str(), nullptr, 10);
    else if (word == "--budget")
      options.budget_seconds = std::atof(value().c_str());
    else if (word == "--op") {
      options.operations = words_of(value());
      for (const std::string& name : options.operations)
        if (!is_operation(name)) usage(argv[0]);
    } else if (word == "--sizes") {
      options.sizes.clear();
      for (const std::string& size : words_of(value()))
        options.sizes.push_back(std::strtoull(size.c_str(), nullptr, 10));
    } else {
      usage(argv[0]);
    }
  }
  return options;
}

inline void pin_to_core(int index) {
  cpu_set_t allowed, one;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&one);
  int nth = index % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && nth-- == 0) CPU_SET(core, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

// Median, fastest and slowest repetition; bytes as asked for.
inline void print(const Options& options, const char* who, const std::string& what, int ranks,
                  std::size_t bytes, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const char* form =
      options.json
          ? "{\"who\": \"%s\", \"op\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"median_us\": %.3f, "
            "\"min_us\": %.3f, \"max_us\": %.3f, \"GB_per_s\": %.3f}\n"
          : "%-7s %-13s %d ranks %10zu B  median %10.2f us  min %10.2f  max %10.2f  %7.2f GB/s\n";
  std::printf(form, who, what.c_str(), ranks, bytes, median * 1e6, seconds.front() * 1e6,
              seconds.back() * 1e6, static_cast<double>(bytes) / median / 1e9);
  std::fflush(stdout);
}

}  // namespace bench
