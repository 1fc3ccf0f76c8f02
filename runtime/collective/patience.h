// Patience: what a thread that found nothing to do does next: spin, yield, or sleep.
// SPDX-License-Identifier: Apache-2.0
//
// Spinning answers in well under a microsecond but takes a core that a peer may need to answer at
// all. Where there are more ranks than cores nobody spins, nor does a rank that is alone on its
// host: nothing comes over a network that soon. Everybody yields for 50 µs, 200 where ranks that
// share a host wait for other hosts, then sleeps. Where others compute on the same cores, a yield
// hands them the core for milliseconds, while a sleeper gets it as soon as it is woken: after a
// yield that took long nobody yields for a while.
#pragma once

#include <sched.h>

#include "runtime/transport/fabric.h"
#include "src/base/clock.h"

namespace hv::runtime {

struct PatienceConfig {
  // Pause instructions. Short: the peer may have been put on this very core, and waits for it to be
  // free.
  Duration spin = std::chrono::microseconds(2);
  Duration yield = std::chrono::microseconds(50);  // after that; then sleep
};

// Without the spin where a host has one rank, or more ranks than they may use cores, all together:
// all may be busy. With more yields for ranks that share a host in a job of several.
PatienceConfig patience_for(const Topology& topology);

class Patience {
 public:
  explicit Patience(const PatienceConfig& config) : config_(config) {}

  // The time now, before anything else is asked.
  void look(TimePoint time) {
    if (has_yielded_ && time - yielded_ > kLongYield) crowded_until_ = time + kCrowdedFor;
    has_yielded_ = false;
  }
  // Something happened.
  void renew() { is_counting_ = false; }
  // Spins or yields once; false when it is time to sleep.
  bool linger(TimePoint time) {
    if (!is_counting_) {
      is_counting_ = true;
      since_ = time;
    }
    const Duration idle = time - since_;
    if (idle < config_.spin) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
      return true;
    }
    if (idle >= config_.spin + config_.yield || time < crowded_until_) return false;
    ::sched_yield();
    yielded_ = time;
    has_yielded_ = true;
    return true;
  }

 private:
  // Longer than ranks that share cores take turns in, and the system its own; shorter than a time
  // slice.
  static constexpr Duration kLongYield = std::chrono::microseconds(1500);
  static constexpr Duration kCrowdedFor = std::chrono::milliseconds(20);

  const PatienceConfig config_;
  bool is_counting_ = false;
  bool has_yielded_ = false;  // at yielded_, and nobody has looked since
  TimePoint since_{};
  TimePoint yielded_{};
  TimePoint crowded_until_{};
};

}  // namespace hv::runtime
