// Which MPI is used, and whether ranks are in one world of it.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_choice.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace hv;
using namespace hv::runtime;

namespace {

Environment with(const std::vector<const char*>& names) {
  Environment environment;
  for (const char* name : names) environment.set(name, "3");
  return environment;
}

std::string order(const std::string& wanted, const std::string& held,
                  const std::vector<const char*>& names) {
  std::string words;
  for (const MpiFlavour* one : mpi_order(wanted, held, with(names)))
    words += (words.empty() ? "" : " ") + std::string(one->name);
  return words;
}

MpiFacts fact(int rank, int size, const char* library = "MPICH 4.0.2") {
  MpiFacts facts;
  facts.is_usable = 1;
  facts.rank = rank;
  facts.size = size;
  std::strcpy(facts.library, library);
  std::strcpy(facts.host, "h");
  return facts;
}

std::string refusal(const std::vector<MpiFacts>& facts) {
  std::vector<int> ranks;
  const Status status = place_in_world(facts, &ranks);
  CHECK(status.code == StatusCode::kUnsupported);
  return status.message;
}

bool holds(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("the MPI that is asked for counts, then the process's own, then its launcher's") {
  CHECK(order("mpich", "openmpi", {"OMPI_COMM_WORLD_SIZE"}) == "mpich");
  CHECK(order("", "openmpi", {"PMI_RANK"}) == "openmpi");
  CHECK(order("", "", {"OMPI_COMM_WORLD_SIZE", "PMI_RANK"}) == "openmpi");
  CHECK(order("", "", {"PMIX_NAMESPACE"}) == "openmpi");
  CHECK(order("", "", {"PMI_FD"}) == "mpich");
  CHECK(order("", "", {"PMIX_NAMESPACE", "PMI_FD"}) == "openmpi mpich");  // hvrun's
  CHECK(order("", "", {}) == "openmpi mpich");
}

TEST_CASE("a launcher of an MPI's is known by what it has set, and so is its number of ranks") {
  CHECK_FALSE(is_started_by_mpi(with({"SLURM_PROCID"})));
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"})
    CHECK(is_started_by_mpi(with({name})));
  CHECK(ranks_of_launcher(with({"PMI_SIZE"})) == 3);
  CHECK(ranks_of_launcher(with({"PMIX_NAMESPACE"})) == 0);
}

TEST_CASE("a list of backends has its words in order") {
  CHECK(backend_words("").empty());
  CHECK(backend_words("mpi, native") == std::vector<std::string>{"mpi", "native"});
  CHECK(names_mpi("nccl,mpi"));
  CHECK_FALSE(names_mpi("native"));
}

TEST_CASE("ranks of one world have their places there, in any order") {
  std::vector<int> ranks;
  CHECK(place_in_world({fact(2, 4), fact(0, 4)}, &ranks).ok());
  CHECK(ranks == std::vector<int>{2, 0});
  CHECK(place_in_world({fact(0, 1)}, &ranks).ok());
}

TEST_CASE("ranks that are in no common world, or of two MPIs, are told apart by host and rank") {
  CHECK(holds(refusal({fact(0, 1), fact(0, 1)}), "rank 0 on h is rank 0 of 1"));
  CHECK(holds(refusal({fact(0, 2), fact(0, 2)}), "rank 1 on h is rank 0 of 2"));
  CHECK(holds(refusal({fact(0, 2), fact(1, 3)}), "in no common MPI_COMM_WORLD"));
  CHECK(holds(refusal({fact(0, 2), fact(1, 2, "Open MPI v4.1.4")}),
              "rank 1 on h has Open MPI v4.1.4, and rank 0 on h MPICH 4.0.2"));
  MpiFacts without;
  std::strcpy(without.host, "g");
  std::strcpy(without.words, "use MPI: no such file");
  CHECK(holds(refusal({fact(0, 2), without}), "rank 1 on g: use MPI: no such file"));
}
