// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/cross/cross_schedule.h"

#include <bit>

namespace hv::runtime {

PowerOfTwo::PowerOfTwo(int hosts, int me)
    : core(static_cast<int>(std::bit_floor(static_cast<unsigned>(hosts)))),
      hosts_(hosts),
      me_(me) {}

int PowerOfTwo::partner() const {
  if (is_extra()) return me_ - core;
  return me_ + core < hosts_ ? me_ + core : -1;
}

void PowerOfTwo::fold_extras(std::size_t bytes, CrossSchedule* schedule) const {
  if (partner() < 0) return;
  const Range all{0, bytes};
  if (is_extra()) {
    schedule->push_back({.to = partner(), .out = all});
  } else {
    schedule->push_back({.from = partner(), .in = all, .arrival = CrossStep::Arrival::kFold});
  }
}

void PowerOfTwo::pay_back_extras(std::size_t bytes, CrossSchedule* schedule) const {
  if (partner() < 0) return;
  const Range all{0, bytes};
  if (is_extra()) {
    schedule->push_back({.from = partner(), .in = all});
  } else {
    schedule->push_back({.to = partner(), .out = all});
  }
}

}  // namespace hv::runtime
