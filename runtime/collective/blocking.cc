// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/blocking.h"

#include <sched.h>

namespace hv::runtime {
namespace {

constexpr int kPauses = 500;  // 5-10 us: longer than a peer that runs is ever late
constexpr std::chrono::microseconds kYield{50};
// Sleep ends by the bell; the limit only bounds the harm of a bug in somebody's ringing.
constexpr std::chrono::seconds kLongSleep{1};

int usable_cores() {
  static const int count = [] {
    cpu_set_t set;
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }();
  return count;
}

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

SpinPolicy::SpinPolicy(int ranks_here) : may_spin_(ranks_here <= usable_cores()) {}

bool SpinPolicy::keep_looking() {
  ++looks_;
  if (may_spin_ && looks_ < kPauses) {
    pause_core();
    return true;
  }
  if (yielding_since_ == TimePoint{} || looks_ == 1 || looks_ == kPauses) yielding_since_ = now();
  if (now() - yielding_since_ >= kYield) return false;
  ::sched_yield();
  return true;
}

Status run_blocking(Collective& collective, Fabric& fabric) {
  SpinPolicy policy(static_cast<int>(fabric.topology().local_ranks.size()));
  const bool has_sockets = fabric.topology().leaders.size() > 1;
  Doorbell& bell = fabric.doorbell();
  for (;;) {
    Progress progress = collective.advance();
    if (progress == Progress::kPending) {
      if (has_sockets) fabric.progress();
      if (policy.keep_looking()) continue;
      const std::uint32_t seen = bell.value();
      fabric.progress();
      progress = collective.advance();
      if (progress == Progress::kPending) bell.wait(seen, now() + kLongSleep);
      policy.reset();
    }
    if (progress == Progress::kDone) return Status::success();
    if (progress == Progress::kFailed) return collective.status();
  }
}

}  // namespace hv::runtime
