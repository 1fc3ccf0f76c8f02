// Tests of the waits in MPI that the agent reports.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/mpi_wiring.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <vector>

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

// Two ranks of one host, by PMI-1.
struct TwoRanks {
  EventLoop loop;
  std::vector<wire::FenceIn> fences;
  std::vector<wire::FenceStalled> stalls;
  std::vector<std::uint32_t> begun;
  std::array<UniqueFd, 2> ranks;
  MpiWiring mpi{loop,
                {[this](const wire::FenceIn& fence) { fences.push_back(fence); },
                 [](std::uint32_t, int) {}, [](const std::string&) {},
                 [this](const wire::FenceStalled& stall) { stalls.push_back(stall); },
                 [](const wire::MpiMissed&) {},
                 [this](const wire::MpiBegun& one) { begun.push_back(one.epoch); }}};

  explicit TwoRanks(StallLimits limits) {
    mpi.limit_waits(limits);
    wire::Launch launch;
    launch.pmi = wire::PmiWorld{2, {}};
    launch.ranks.resize(2);
    launch.ranks[1].rank = 1;
    mpi.start_pmi(launch, "test");
    RankEnvironment environment;
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      REQUIRE(mpi.prepare(rank, &environment, &ranks[rank]).ok());
  }
  void say(std::size_t rank, const std::string& words) const {
    REQUIRE(::write(ranks[rank].get(), words.data(), words.size()) ==
            static_cast<ssize_t>(words.size()));
  }
  void begin_and_wait(std::size_t rank) const {
    say(rank, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=barrier_in\n");
  }
  // Runs until that many were reported.
  void until_told(std::size_t count) {
    for (const TimePoint limit = now() + 20s; stalls.size() < count && now() < limit;)
      loop.run_once(now() + 5ms);
    REQUIRE(stalls.size() >= count);
  }
  void meet() {
    for (const TimePoint limit = now() + 20s; fences.empty() && now() < limit;)
      loop.run_once(now() + 5ms);
    REQUIRE(fences.size() == 1);
    mpi.pass({fences[0].epoch, fences[0].number, {}});
  }
};

}  // namespace

TEST_CASE("a later wait in MPI leaves the limit of a beginning untouched") {
  TwoRanks job({50ms, 150ms});
  job.begin_and_wait(0);
  job.begin_and_wait(1);
  job.meet();
  job.say(0, "cmd=barrier_in\n");
  job.until_told(3);  // after 200 ms
  for (const wire::FenceStalled& stall : job.stalls)
    CHECK((!stall.is_too_long && stall.meeting == wire::Meeting::kMpi));
  CHECK(job.mpi.seconds_waited_since() >= 0.2);
  CHECK(job.mpi.seconds_waited_to_begin() == 0);
  job.stalls.clear();
  job.say(1, "cmd=finalize\n");
  job.begin_and_wait(1);
  job.until_told(3);
  CHECK(job.stalls.back().is_too_long);
  for (const wire::FenceStalled& stall : job.stalls)
    CHECK(stall.meeting == wire::Meeting::kMpiInit);
  CHECK(job.mpi.seconds_waited_since() == 0);
}

TEST_CASE("the begin of MPI is reported once, and its ranks are listed until all have begun") {
  TwoRanks job({});
  CHECK(job.mpi.beginning(wire::kPmiEpoch).empty());
  job.say(1, "cmd=init pmi_version=1 pmi_subversion=1\n");
  for (const TimePoint limit = now() + 20s; job.begun.empty() && now() < limit;)
    job.loop.run_once(now() + 5ms);
  CHECK(job.mpi.beginning(wire::kPmiEpoch) == std::vector<std::uint32_t>{1});
  CHECK(job.mpi.beginning(wire::kPmixEpoch).empty());
  job.say(1, "cmd=barrier_in\n");
  job.begin_and_wait(0);
  job.meet();
  CHECK(job.mpi.beginning(wire::kPmiEpoch).empty());
  CHECK(job.begun == std::vector<std::uint32_t>{wire::kPmiEpoch});
}
