// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/seeded_yields.h"

#include <sched.h>

#include <atomic>

#include "runtime/transport/shm/host_memory.h"

namespace hv::runtime {
namespace {

// Threads that come later draw other numbers: those of a rank (its caller, its engine) differ.
std::atomic<std::uint32_t> next_seed{1};

void yield_by_seed() {
  thread_local std::uint32_t state = next_seed.fetch_add(0x9e3779b9);
  state = state * 1664525 + 1013904223;
  if (state >> 28 == 0) ::sched_yield();
}

}  // namespace

SeededYields::SeededYields(std::uint32_t seed) {
  next_seed = seed;
  flag_access_hook = yield_by_seed;
}

SeededYields::~SeededYields() { flag_access_hook = nullptr; }

}  // namespace hv::runtime
