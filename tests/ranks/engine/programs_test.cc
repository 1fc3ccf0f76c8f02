// Random programs: operations of every kind in overlapping process sets that come and go, in
// another order on each rank, against a plain reference.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "tests/ranks/drawn.h"
#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/player.h"
#include "tests/ranks/engine/processes.h"
#include "tests/ranks/seeded_yields.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// A program has more streams than a GPU has connections, and makes communicators while others'
// work waits: ranks that share a context, too, then hold each other up for good.
bool have_own_contexts() {
  if (Gpu::is_real()) MESSAGE("not played: threads share one GPU's context");
  return !Gpu::is_real();
}

// In every second program the threads yield at flags; by seed / 2, so in those over a memfd too.
void play_as_threads(const JobShape& shape, std::uint64_t seed) {
  std::optional<SeededYields> yields;
  if (seed / 2 % 2 == 1) yields.emplace(static_cast<std::uint32_t>(seed));
  JobOptions options;
  options.shape = shape;
  options.kind = seed % 2 == 0 ? RankKind::kThreadsOneMapping : RankKind::kThreadsMemfd;
  options.environment = knobs_of(shape, seed);
  run_job(options, [seed](Rank& rank) {
    play(Player{rank.context, rank.rank, rank.size, rank.at, rank.gpu}, seed);
  });
}

void play_as_processes(const JobShape& shape, std::uint64_t seed) {
  Processes job(shape, [seed](Context& context) {
    const RankIdentity& who = context.identity();
    std::string position;
    try {
      const auto at = [&](const std::string& where) { position = where; };
      const auto gpu = GpuTensors::wanted(who.rank);
      play(Player{context, who.rank, who.size, at, gpu.get()}, seed);
      hvrun_request barrier = HVRUN_REQUEST_INIT;
      barrier.operation = HVRUN_BARRIER;  // nobody leaves before all are through
      return run_in(context, barrier).ok() ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d, %s: %s\n", who.rank, position.c_str(), error.what());
      return 2;
    }
  });
  for (int rank = 0; rank < size_of(shape); ++rank) CHECK(job.exit_code(0) == 0);
}

// Programs on GPUs take up to eight times as long as those in the host's memory, and under --full
// each memory has its own run.
int share_of_full(int of_full) {
  constexpr int kLessOnGpus = 4;
  return std::getenv("HVRUN_TEST_MEMORY") == nullptr ? of_full : of_full / kLessOnGpus;
}

// of_full: so many of the 10,000 programs under --full; a quick run has far fewer.
void play_programs(int of_full, const std::vector<JobShape>& shapes, std::uint64_t first_seed,
                   void (*how)(const JobShape&, std::uint64_t)) {
  if (how == play_as_threads && !have_own_contexts()) return;
  // Making communicators on a real GPU takes a second.
  const int wanted = is_whole_product() ? share_of_full(of_full) : static_cast<int>(0.15 * of_full);
  const int least = static_cast<int>(shapes.size());
  const int programs = Gpu::is_real() ? least : std::max(least, scaled(wanted));
  for (int i = 0; i < programs; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    const JobShape& shape = shapes[static_cast<std::size_t>(i) % shapes.size()];
    CAPTURE(seed);
    CAPTURE(name_of(shape));
    how(shape, seed);
  }
}

}  // namespace

TEST_CASE("random programs yield what a reference yields, processes") {
  play_programs(1350, {{2}, {3}, {2, 1}, {1, 2, 2}, {4}}, 20301121, play_as_processes);
}

// Few: so many processes share two cores badly.
TEST_CASE("random programs yield what a reference yields, six to eight processes") {
  play_programs(150, {{6}, {3, 4}, {8}}, 20311121, play_as_processes);
}

TEST_CASE("random programs yield what a reference yields, up to five ranks of a host") {
  play_programs(2500, {{2}, {3}, {4}, {5}}, 20261121, play_as_threads);
}

TEST_CASE("random programs yield what a reference yields, up to eight ranks of a host") {
  play_programs(1500, {{6}, {7}, {8}}, 20271121, play_as_threads);
}

TEST_CASE("random programs yield what a reference yields, two hosts") {
  play_programs(2500, {{1, 1}, {2, 2}, {1, 3}, {2, 1}}, 20281121, play_as_threads);
}

TEST_CASE("random programs yield what a reference yields, three hosts and more") {
  play_programs(2000, {{1, 1, 1}, {1, 2, 3}, {2, 1, 1, 2}}, 20291121, play_as_threads);
}
