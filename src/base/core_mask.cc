// SPDX-License-Identifier: Apache-2.0
#include "src/base/core_mask.h"

#include <sched.h>

#include <algorithm>
#include <bit>

namespace hv {

CoreMask own_cores() {
  // The mask must be as large as the kernel's, which a fixed cpu_set_t is not beyond 1,024 cores.
  for (std::size_t cores = 1024; cores <= 1u << 20; cores *= 2) {
    CoreMask mask(cores / 64);
    if (::sched_getaffinity(0, cores / 8, reinterpret_cast<cpu_set_t*>(mask.data())) == 0)
      return mask;
  }
  return {};
}

int count_cores(const CoreMask& mask) {
  int count = 0;
  for (const std::uint64_t word : mask) count += std::popcount(word);
  return count;
}

CoreMask mask_of(const std::vector<std::uint32_t>& cores) {
  CoreMask mask;
  for (const std::uint32_t core : cores) {
    if (mask.size() <= core / 64) mask.resize(core / 64 + 1);
    mask[core / 64] |= std::uint64_t{1} << core % 64;
  }
  return mask;
}

bool run_on(const CoreMask& mask) {
  return ::sched_setaffinity(0, mask.size() * sizeof mask[0],
                             reinterpret_cast<const cpu_set_t*>(mask.data())) == 0;
}

void unite(CoreMask* mask, const CoreMask& more) {
  mask->resize(std::max(mask->size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) (*mask)[i] |= more[i];
}

}  // namespace hv
