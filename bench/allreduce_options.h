// What the allreduce benchmarks, ours and OpenMPI's, share: options, repetitions, the form of a
// result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

struct Options {
  int ranks = 2;
  std::vector<std::size_t> sizes = {4, 1024, 16384, 65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  bool json = false;
  bool pin = false;
  bool in_place = false;
  bool copy = false;
  std::size_t slot_bytes = 0;
  double budget_seconds = 0.25;  // of each size, about

  // Enough repetitions for a median, within the budget, at an assumed 4 GB/s.
  int repetitions(std::size_t bytes) const {
    const double expected = 2e-6 + static_cast<double>(bytes) / 4e9;
    return std::clamp(static_cast<int>(budget_seconds / (expected * batch(bytes))), 5, 200);
  }
  // Small ones are timed many at once: a clock's reading costs as much as they do.
  int batch(std::size_t bytes) const { return bytes <= 65536 ? 50 : 1; }
};

inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
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
    else if (word == "--slot")
      options.slot_bytes = std::strtoull(value().c_str(), nullptr, 10);
    else if (word == "--budget")
      options.budget_seconds = std::atof(value().c_str());
    else if (word == "--sizes") {
      options.sizes.clear();
      const std::string list = value();
      for (const char* at = list.c_str(); *at;) {
        char* end;
        options.sizes.push_back(std::strtoull(at, &end, 10));
        at = *end == ',' ? end + 1 : end;
        if (end == at && *end) break;
      }
    } else {
      std::fprintf(stderr,
                   "usage: %s [--ranks N] [--sizes B,B,...] [--json] [--pin] [--in-place] [--copy] "
                   "[--slot BYTES] [--budget SECONDS]\n",
                   argv[0]);
      std::exit(2);
    }
  }
  return options;
}

// A buffer as tensor libraries allocate them: aligned to a cache line.
class Buffer {
 public:
  Buffer(std::size_t count, float value)
      : data_(static_cast<float*>(std::aligned_alloc(64, (count * 4 + 63) / 64 * 64))),
        count_(count) {
    fill(value);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void fill(float value) { std::fill(data_, data_ + count_, value); }
  float* data() { return data_; }
  float operator[](std::size_t i) const { return data_[i]; }

 private:
  float* data_;
  std::size_t count_;
};

inline void pin_to_core(int index) {
  cpu_set_t allowed, one;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&one);
  int nth = index % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && nth-- == 0) CPU_SET(core, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

// Rank 0's median, fastest and slowest repetition.
inline void print(const Options& options, const char* who, std::size_t bytes,
                  std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const char* form =
      options.json
          ? "{\"who\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"median_us\": %.3f, \"min_us\": "
            "%.3f, \"max_us\": %.3f, \"GB_per_s\": %.3f}\n"
          : "%-7s %d ranks %10zu B  median %10.2f us  min %10.2f  max %10.2f  %7.2f GB/s\n";
  std::printf(form, who, options.ranks, bytes, median * 1e6, seconds.front() * 1e6,
              seconds.back() * 1e6, static_cast<double>(bytes) / median / 1e9);
  std::fflush(stdout);
}

}  // namespace bench
