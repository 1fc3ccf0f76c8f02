// Tests of how MPI programs are told of each other, and of what PMI is told of the hosts.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/mpi_wires.h"

#include <doctest/doctest.h>

using namespace hv::launcher;

namespace {

std::string wires(const CommonEnvironment& environment, WireMpi wanted = WireMpi::kByItself) {
  const MpiWires found = mpi_wires(wanted, environment);
  return std::string(found.pmix ? "pmix " : "") + (found.pmi ? "pmi" : "");
}

}  // namespace

TEST_CASE("MPI is wired by itself where HVRUN_BACKEND names it") {
  CHECK(wires({}) == "");
  CHECK(wires({{"HVRUN_BACKEND=nccl,native"}}) == "");
  CHECK(wires({{"HVRUN_BACKEND=mpi,native"}}) == "pmix pmi");
  CHECK(wires({{"HVRUN_BACKEND=nccl, mpi"}}) == "pmix pmi");
  CHECK(wires({{"HVRUN_BACKEND=mpi", "HVRUN_MPI=mpich"}}) == "pmi");
  CHECK(wires({{"HVRUN_BACKEND=mpi", "HVRUN_MPI=openmpi"}}) == "pmix ");
}

TEST_CASE("a program's own -x counts more for its ranks, and one that wants MPI is enough") {
  CommonEnvironment environment{{"HVRUN_BACKEND=native"}};
  environment.of_programs = {{}, {"HVRUN_BACKEND=mpi", "HVRUN_MPI=mpich"}};
  CHECK(wires(environment) == "pmi");
  environment.entries = {"HVRUN_BACKEND=mpi"};
  environment.of_programs = {{"HVRUN_BACKEND=native"}};
  CHECK(wires(environment) == "");
}

TEST_CASE("--wire-mpi beats HVRUN_BACKEND") {
  const CommonEnvironment mpi{{"HVRUN_BACKEND=mpi"}};
  CHECK(wires(mpi, WireMpi::kNone) == "");
  CHECK(wires(mpi, WireMpi::kPmi) == "pmi");
  CHECK(wires({}, WireMpi::kPmix) == "pmix ");
  CHECK(wires({}, WireMpi::kBoth) == "pmix pmi");
}

TEST_CASE("PMI's mapping says in blocks which ranks share a host") {
  struct Case {
    std::vector<int> hosts;
    const char* mapping;
  };
  for (const Case& each : std::vector<Case>{{{0}, "(vector,(0,1,1))"},
                                            {{0, 0, 0}, "(vector,(0,1,3))"},
                                            {{0, 0, 1, 1, 2, 2}, "(vector,(0,3,2))"},
                                            {{0, 0, 1}, "(vector,(0,1,2),(1,1,1))"},
                                            {{0, 1, 0, 1}, "(vector,(0,2,1))"},
                                            {{0, 1, 1, 0}, "(vector,(0,1,1),(1,1,2),(0,1,1))"},
                                            {{0, 0, 1, 1, 0, 0, 1, 1}, "(vector,(0,2,2))"},
                                            {{2, 1, 0}, "(vector,(2,1,1),(1,1,1),(0,1,1))"}}) {
    CHECK(pmi_mapping(each.hosts) == each.mapping);
  }
}

TEST_CASE("a mapping that PMI has no room for is not told") {
  std::vector<int> hosts;
  for (int rank = 0; rank < 1000; ++rank) hosts.push_back(rank * rank % 97);
  CHECK(pmi_mapping(hosts) == "");
}
