// Patience: what a thread that found nothing to do does next: spin, yield, or sleep.
// SPDX-License-Identifier: Apache-2.0
//
// Spinning answers in well under a microsecond but takes a core that a peer may need to answer at
// all: where there are more ranks than cores nobody spins, and everybody yields for 50 µs, then
// sleeps.
#pragma once

#include <sched.h>

#include "src/base/clock.h"

namespace hv::runtime {

struct PatienceConfig {
  // Pause instructions. Short: the peer may have been put on this very core, and waits for it to be
  // free.
  Duration spin = std::chrono::microseconds(2);
  Duration yield = std::chrono::microseconds(50);  // after that; then sleep
};

// Without the spin where a host has more ranks than this process may use cores: all may be busy.
PatienceConfig patience_for(int ranks_here);

class Patience {
 public:
  explicit Patience(const PatienceConfig& config) : config_(config) {}

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
    if (idle >= config_.spin + config_.yield) return false;
    ::sched_yield();
    return true;
  }

 private:
  const PatienceConfig config_;
  bool is_counting_ = false;
  TimePoint since_{};
};

}  // namespace hv::runtime
