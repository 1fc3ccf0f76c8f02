// Which MPI is used, and whether ranks are in one world of it.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_choice.h"

#include <doctest/doctest.h>

#include "src/wire/codec.h"

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
  facts.library = library;
  facts.host = "h";
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

TEST_CASE("an MPI that hvrun was not built beside is told with what is there instead") {
  const MpiFlavour &openmpi = mpi_flavours()[0], &mpich = mpi_flavours()[1];
  const Status alone = not_built(openmpi, "/lib/x.so", {});
  CHECK(alone.code == StatusCode::kUnsupported);
  CHECK(alone.message ==
        "use MPI: /lib/x.so is not there: this hvrun was built where Open MPI was not; try: "
        "openmpi-bin and libopenmpi-dev (Debian, Ubuntu), and build hvrun again");
  CHECK(not_built(openmpi, "/lib/x.so", {&mpich}).message ==
        alone.message + ", or HVRUN_MPI=mpich, whose part is there, and MPICH's own launcher");
}

TEST_CASE("a file that is found as an MPI's and cannot be used is named, with its folder") {
  const MpiFlavour& openmpi = mpi_flavours()[0];
  const Status status = broken_libraries(
      openmpi, {{"/a/b/libmpi.so.40", "it is no MPI"}, {"/c/libmpi.so.80", "file too short"}});
  CHECK(status.code == StatusCode::kUnsupported);
  CHECK(status.message ==
        "use MPI: what is found as Open MPI cannot be used: /a/b/libmpi.so.40: it is no MPI, "
        "/c/libmpi.so.80: file too short; try: LD_LIBRARY_PATH without /a/b, or openmpi-bin and "
        "libopenmpi-dev (Debian, Ubuntu) installed anew");
  CHECK(holds(broken_libraries(openmpi, {{"libmpi.so.40", "x"}}).message, "as Open MPI wants it"));
  CHECK(replaced_words("a; try: b", "MPICH 4") == "a; this job uses MPICH 4 instead; try: b");
  CHECK(replaced_words("a", "MPICH 4") == "a; this job uses MPICH 4 instead");
}

TEST_CASE("what a launcher says of its ranks") {
  CHECK(ranks_of_launcher(with({"PMI_SIZE"})) == 3);
  CHECK(ranks_of_launcher(with({"SLURM_STEP_NUM_TASKS"})) == 3);
  CHECK(ranks_of_launcher(with({})) == 0);
}

TEST_CASE("the MPI that is asked for counts, then the process's own, then its launcher's") {
  CHECK(order("mpich", "openmpi", {"OMPI_COMM_WORLD_SIZE"}) == "mpich");
  CHECK(order("", "openmpi", {"PMI_RANK"}) == "openmpi");
  CHECK(order("", "", {"OMPI_COMM_WORLD_SIZE", "PMI_RANK"}) == "openmpi");
  CHECK(order("", "", {"PMIX_NAMESPACE"}) == "openmpi mpich");  // srun --mpi=pmix
  CHECK(order("", "mpich", {"PMIX_NAMESPACE"}) == "mpich");
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
  without.host = "g";
  without.words = "use MPI: no such file";
  CHECK(holds(refusal({fact(0, 2), without}), "rank 1 on g: use MPI: no such file"));
}

TEST_CASE("what a rank could not open arrives whole, with its advice") {
  MpiFacts told, arrived;
  told.host = "g";
  told.words = "use MPI: " + std::string(3000, 'x') + "; try: y";
  REQUIRE(decode(encode(told), &arrived));
  const Status status = can_begin_together({arrived});
  CHECK(status.message == "rank 0 on g: " + told.words);
  CHECK_FALSE(decode("", &arrived));
}
