// SPDX-License-Identifier: Apache-2.0
#include "bench/ranks/blocking.h"

#include "runtime/collective/patience.h"

namespace hv::runtime {
namespace {

// Sleep ends by the bell; the limit only bounds the harm of a bug in somebody's ringing.
constexpr std::chrono::seconds kLongSleep{1};
// Without sockets only signs of life need the fabric: that often is soon enough.
constexpr unsigned kTurnsASign = 16;

}  // namespace

Status run_blocking(Collective& collective, Fabric& fabric) {
  Patience patience(patience_for(fabric.topology()));
  const bool has_sockets = fabric.topology().leaders.size() > 1;
  Doorbell& bell = fabric.doorbell();
  unsigned turns = 0;
  for (;;) {
    Progress progress = collective.advance();
    if (progress == Progress::kPending) {
      if (has_sockets) fabric.progress();
      const TimePoint time = now();
      patience.look(time);
      if (patience.linger(time)) {
        patience.look(now());  // what is advanced now is no part of a yield
        continue;
      }
      const std::uint32_t seen = bell.value();
      fabric.progress();
      progress = collective.advance();
      if (progress == Progress::kPending) bell.wait(seen, now() + kLongSleep);
      patience.renew();
    }
    if (has_advanced(progress)) {
      patience.renew();
      if (has_sockets || ++turns % kTurnsASign == 0) fabric.progress();
    }
    if (progress == Progress::kDone) return Status::success();
    if (progress == Progress::kFailed) return collective.status();
  }
}

}  // namespace hv::runtime
