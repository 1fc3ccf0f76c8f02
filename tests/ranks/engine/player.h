// What a rank does in a random program, be it a thread, a process or a rank of an MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/api/context.h"
#include "tests/ranks/engine/gpu_tensors.h"
#include "tests/ranks/run_ranks.h"

namespace hv::runtime {

struct Player {
  Context& context;
  int rank;
  int size;
  std::function<void(const std::string&)> at;
  GpuTensors* gpu = nullptr;  // where tensors are taken; nullptr: they stay on the host
};

// Throws where a result is not the reference's. All ranks play the same seed.
void play(const Player& player, std::uint64_t seed);

// With which the program of that seed runs.
Environment knobs_of(const JobShape& shape, std::uint64_t seed);

}  // namespace hv::runtime
