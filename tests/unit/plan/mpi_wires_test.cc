// Tests of how MPI programs find each other, and of PMI's mapping of ranks to hosts.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/mpi_wires.h"

#include <doctest/doctest.h>

using namespace hv::launcher;
using hv::RankEnvironment;

namespace {

std::string wires(const CommonEnvironment& environment, WireMpi requested = WireMpi::kAuto) {
  const MpiWires found = mpi_wires(requested, environment);
  return std::string(found.pmix ? "pmix " : "") + (found.pmi ? "pmi" : "");
}

RankEnvironment variables_of(const std::vector<std::string>& entries) {
  RankEnvironment variables;
  variables.set_all(entries);
  return variables;
}

CommonEnvironment common(const std::vector<std::string>& entries) {
  return {variables_of(entries)};
}

// What ranks have as HVRUN_BACKEND with --mpi, and the warnings.
std::string mpi_first(const hv::Environment& own, const std::vector<std::string>& exports = {}) {
  JobSpec spec;
  spec.programs.push_back({{"train"}});
  spec.environment.exports = parse_exports(exports);
  std::string text;
  CommonEnvironment ranks = common_environment(spec, own);
  for (const std::string& line : put_mpi_first(&ranks)) text += " | " + line;
  return ranks.variables.as_environment().get_or("HVRUN_BACKEND", "") + text;
}

}  // namespace

TEST_CASE("MPI is wired automatically where HVRUN_BACKEND names it") {
  CHECK(wires({}) == "");
  CHECK(wires(common({"HVRUN_BACKEND=nccl,native"})) == "");
  CHECK(wires(common({"HVRUN_BACKEND=mpi,native"})) == "pmix pmi");
  CHECK(wires(common({"HVRUN_BACKEND=nccl, mpi"})) == "pmix pmi");
  CHECK(wires(common({"HVRUN_BACKEND=mpi", "HVRUN_MPI=mpich"})) == "pmi");
  CHECK(wires(common({"HVRUN_BACKEND=mpi", "HVRUN_MPI=openmpi"})) == "pmix ");
  CHECK(wires(common({"HVRUN_BACKEND=mpi", "HVRUN_MPI=MPICH"})) == "pmi");
}

TEST_CASE("a program's own -x counts more for its ranks, and one that wants MPI is enough") {
  CommonEnvironment environment = common({"HVRUN_BACKEND=native"});
  environment.program_variables = {{}, variables_of({"HVRUN_BACKEND=mpi", "HVRUN_MPI=mpich"})};
  CHECK(wires(environment) == "pmi");
  environment = common({"HVRUN_BACKEND=mpi"});
  environment.program_variables = {variables_of({"HVRUN_BACKEND=native"})};
  CHECK(wires(environment) == "");
}

TEST_CASE("--wire-mpi beats HVRUN_BACKEND") {
  const CommonEnvironment mpi = common({"HVRUN_BACKEND=mpi"});
  CHECK(wires(mpi, WireMpi::kNone) == "");
  CHECK(wires(mpi, WireMpi::kPmi) == "pmi");
  CHECK(wires({}, WireMpi::kPmix) == "pmix ");
  CHECK(wires({}, WireMpi::kBoth) == "pmix pmi");
}

TEST_CASE("--mpi puts mpi before the default") {
  CHECK(mpi_first({}) == "mpi,nccl,native");
  CHECK(mpi_first(hv::Environment::from_entries({"HVRUN_BACKEND="})) == "mpi,nccl,native");
}

TEST_CASE("--mpi leaves a list that names mpi, and warns of one that does not") {
  struct Case {
    const char *list, *with_mpi;
  };
  for (const Case& each : {
           Case{"native,mpi", "native,mpi"}, Case{" nccl, mpi ,native", " nccl, mpi ,native"},
           Case{"native",
                "mpi,native | --mpi puts mpi first: ranks get HVRUN_BACKEND=mpi,native instead of "
                "native"},
           Case{"nccl, native",
                "mpi,nccl,native | --mpi puts mpi first: ranks get HVRUN_BACKEND=mpi,nccl,native "
                "instead of nccl, native"},
           Case{"ncl", "ncl"},  // the check of knobs reports it
       }) {
    CAPTURE(each.list);
    const std::string entry = std::string("HVRUN_BACKEND=") + each.list;
    CHECK(mpi_first(hv::Environment::from_entries({entry})) == each.with_mpi);
    CHECK(mpi_first({}, {entry}) == each.with_mpi);
    CHECK(mpi_first(hv::Environment::from_entries({"HVRUN_BACKEND=mpi"}), {entry}) ==
          each.with_mpi);
  }
}

TEST_CASE("--mpi counts for the programs of a job that have a list of their own") {
  JobSpec spec;
  spec.programs = {{{"a"}, "", 1, parse_exports({"HVRUN_BACKEND=native"})}, {{"b"}, "", 1, {}}};
  CommonEnvironment environment = common_environment(spec, {});
  const auto lines = put_mpi_first(&environment);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == "--mpi puts mpi first: ranks get HVRUN_BACKEND=mpi,native instead of native");
  using Entries = std::vector<std::string>;
  REQUIRE(environment.program_variables.size() == 2);
  CHECK(environment.program_variables[0].entries() == Entries{"HVRUN_BACKEND=mpi,native"});
  CHECK(environment.program_variables[1].entries() == Entries{});
  CHECK(environment.variables.as_environment().get("HVRUN_BACKEND") ==
        std::optional<std::string>("mpi,nccl,native"));
  CHECK(wires(environment) == "pmix pmi");
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
