// Random programs by ranks that an MPI's launcher has started, each of which carries tensors by
// MPI: what rank does what, and what must come of it, follows from a seed.
// SPDX-License-Identifier: Apache-2.0
//
// mpi_programs COUNT SEED: as many, one after the other, each with a context of its
// own. Where it goes wrong it says what, where and with which seed, and exits with 1.
// HVRUN_TEST_MEMORY: as tests/ranks/engine has it.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "runtime/api/birth.h"
#include "tests/ranks/engine/player.h"
#include "tests/ranks/engine/requests.h"

namespace {

using namespace hv;
using namespace hv::runtime;

// Not HVRUN_DETERMINISTIC, which MPI leaves to the native backend.
void play_one(std::uint64_t seed, std::string* position) {
  ContextParts parts;
  Status status = parts_of_process(&parts);
  expect(status.ok(), status.message);
  const Environment knobs = knobs_of({parts.identity.size}, seed);
  for (const char* name : {"HVRUN_CACHE_CAPACITY", "HVRUN_FUSION_THRESHOLD"})
    if (knobs.has(name)) parts.environment.set(name, knobs.get_or(name, ""));
  std::shared_ptr<Context> context;
  status = Context::join(std::move(parts), &context);
  expect(status.ok(), status.message);
  const RankIdentity& who = context->identity();
  const auto at = [&](const std::string& where) { *position = where; };
  const auto gpu = GpuTensors::wanted(who.rank);
  play(Player{*context, who.rank, who.size, at, gpu.get()}, seed);
  at("waiting for the others' end");
  expect(run_in(*context, barrier_request()).ok(), "the last barrier");
  context->shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::uint64_t first = std::strtoull(argv[2], nullptr, 10);
  for (std::uint64_t seed = first; seed < first + std::strtoull(argv[1], nullptr, 10); ++seed) {
    std::string position = "joining";
    try {
      play_one(seed, &position);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "seed %llu, %s: %s\n", static_cast<unsigned long long>(seed),
                   position.c_str(), error.what());
      std::_Exit(1);
    }
  }
  std::printf("played\n");
}
