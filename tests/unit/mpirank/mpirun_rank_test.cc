// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpirank/mpirun_rank.h"

#include <doctest/doctest.h>

#include "src/base/error.h"

namespace hv::launcher {
namespace {

// Four cores in each of two nodes, with two threads each.
HostFacts eight_cores() {
  HostFacts facts;
  facts.usable_cores = 8;
  for (int core = 0; core < 8; ++core) facts.cores.push_back({core / 4, {core, core + 8}, 0});
  return facts;
}

Environment of_open_mpi(int rank, int local_rank, int local_size) {
  Environment environment;
  environment.set("OMPI_COMM_WORLD_RANK", std::to_string(rank));
  environment.set("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank));
  environment.set("OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size));
  return environment;
}

Environment of_hydra(int rank, int local_rank, int local_size) {
  Environment environment;
  environment.set("PMI_RANK", std::to_string(rank));
  environment.set("MPI_LOCALRANKID", std::to_string(local_rank));
  environment.set("MPI_LOCALNRANKS", std::to_string(local_size));
  return environment;
}

MpirunRank bound(const std::string& words, const Environment& environment,
                 const HostFacts& facts = eight_cores()) {
  return bind_mpirun_rank(words, environment, facts, "b");
}

TEST_CASE("mpirun_rank gives a rank its share of the host, whichever MPI tells its place") {
  for (const auto& place : {of_open_mpi, of_hydra}) {
    CHECK(bound("slot", place(7, 0, 3)).cores == mask_of({0, 1, 8, 9}));
    CHECK(bound("slot", place(8, 1, 3)).cores == mask_of({2, 3, 10, 11}));
    CHECK(bound("slot", place(9, 2, 3)).cores == mask_of({4, 5, 6, 7, 12, 13, 14, 15}));
    CHECK(bound("numa", place(8, 1, 3)).cores == mask_of({4, 5, 6, 7, 12, 13, 14, 15}));
    CHECK(bound("slot", place(0, 0, 1)).cores.empty());
    // More ranks than cores.
    CHECK(bound("slot", place(9, 19, 20)).cores == mask_of({4, 5, 6, 7, 12, 13, 14, 15}));
  }
}

TEST_CASE("mpirun_rank binds a rank near its GPU") {
  HostFacts facts = eight_cores();
  for (const int node : {1, 0}) {
    facts.gpus.emplace_back();
    facts.gpus.back().node = node;
  }
  CHECK(bound("slot", of_open_mpi(0, 0, 2), facts).cores == mask_of({4, 5, 6, 7, 12, 13, 14, 15}));
}

TEST_CASE("mpirun_rank says how many threads a rank has, unless somebody has said so") {
  Environment environment = of_hydra(4, 1, 3);
  CHECK(bound("slot", environment).environment.get_or("OMP_NUM_THREADS", "") == "2");
  environment.set("OMP_NUM_THREADS", "5");
  CHECK(bound("slot", environment).environment.get_or("OMP_NUM_THREADS", "") == "5");
}

TEST_CASE("add_numbers names a rank's place as PyTorch asks for it, whichever MPI tells it") {
  for (Environment environment : {of_open_mpi(7, 1, 3), of_hydra(7, 1, 3)}) {
    environment.set(environment.has("PMI_RANK") ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE", "9");
    add_numbers(&environment);
    CHECK(environment.get_or("RANK", "") == "7");
    CHECK(environment.get_or("WORLD_SIZE", "") == "9");
    CHECK(environment.get_or("LOCAL_RANK", "") == "1");
    CHECK(environment.get_or("LOCAL_WORLD_SIZE", "") == "3");
  }
  Environment nobodys;
  add_numbers(&nobodys);
  CHECK(!nobodys.has("RANK"));
}

TEST_CASE("mpirun_rank reports what a rank has, where that is wanted") {
  CHECK(bound(binding_words(false, false), of_hydra(4, 1, 3)).report.empty());
  CHECK(bound(binding_words(false, true), of_hydra(4, 1, 3)).report ==
        "hvrun: rank 4 on host b: cores 2-3,10-11, NUMA node 0\n");
  CHECK(bound(binding_words(true, true), of_hydra(4, 1, 3)).report ==
        "hvrun: rank 4 on host b: cores 4-7,12-15, NUMA node 1\n");
}

TEST_CASE("mpirun_rank takes no rule and no place that it does not understand") {
  for (const char* words : {"", "core", "slot+", "slot+tol", "slot+told+told", "+told"})
    CHECK_THROWS_AS(bound(words, of_hydra(0, 0, 1)), Error);
  for (const Environment& environment :
       {Environment(), of_hydra(0, 1, 1), of_hydra(0, -1, 1), of_hydra(-1, 0, 1),
        of_open_mpi(0, 0, 0), of_open_mpi(0, 0, kMostRanks + 1)})
    CHECK_THROWS_WITH_AS(bound("slot", environment),
                         "bind a rank: neither Open MPI's variables (OMPI_COMM_WORLD_LOCAL_RANK, "
                         "...) nor MPICH's (MPI_LOCALRANKID, ...) say which of how many ranks of "
                         "this host it is",
                         Error);
}

}  // namespace
}  // namespace hv::launcher
