// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_choice.h"

#include <set>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

// Of why a rank can use no MPI: what was looked for, in long folders, too, and what to try.
constexpr std::size_t kMostWords = 4000;

constexpr const char* kHowToStart =
    "hvrun --wire-mpi, hvrun --mpi, mpirun, or srun --mpi=pmix, which start ranks that an MPI "
    "connects";

std::string words_of(std::size_t rank, const MpiFacts& facts) {
  return "rank " + std::to_string(rank) + " on " + printable(facts.host);
}

}  // namespace

const std::vector<MpiFlavour>& mpi_flavours() {
  static const std::vector<MpiFlavour> all{{"openmpi",
                                            "Open MPI",
                                            "openmpi-bin and libopenmpi-dev",
                                            "libhvrun-openmpi.so",
                                            {"libmpi.so.40", "libmpi.so.80"},
                                            HVRUN_OPENMPI_FOLDER,
                                            true},
                                           {"mpich",
                                            "MPICH",
                                            "mpich",
                                            "libhvrun-mpich.so",
                                            {"libmpi.so.12", "libmpich.so.12"},
                                            HVRUN_MPICH_FOLDER,
                                            false}};
  return all;
}

std::vector<const MpiFlavour*> mpi_order(const std::string& wanted, const std::string& held,
                                         const Environment& environment) {
  std::vector<const MpiFlavour*> order;
  // hvrun itself tells ranks both ways, and an MPICH may have been built with PMIx.
  const bool speaks_pmix = environment.has("PMIX_NAMESPACE");
  const bool speaks_pmi = environment.has("PMI_RANK") || environment.has("PMI_FD");
  const std::string first = !wanted.empty()                           ? wanted
                            : !held.empty()                           ? held
                            : environment.has("OMPI_COMM_WORLD_SIZE") ? "openmpi"
                            : speaks_pmi && !speaks_pmix              ? "mpich"
                                                                      : "";
  for (const MpiFlavour& one : mpi_flavours())
    if (first.empty() || first == one.name) order.push_back(&one);
  return order;
}

Status not_built(const MpiFlavour& flavour, const std::string& path,
                 const std::vector<const MpiFlavour*>& others) {
  std::string words = "use MPI: " + path + " is not there: this hvrun was built where " +
                      flavour.title + " was not; try: " + flavour.packages +
                      " (Debian, Ubuntu), and build hvrun again";
  for (const MpiFlavour* const other : others)
    words += std::string(", or HVRUN_MPI=") + other->name + ", whose part is there, and " +
             other->title + "'s own launcher";
  return {StatusCode::kUnsupported, words};
}

Status broken_libraries(const MpiFlavour& flavour, const std::vector<BrokenLibrary>& broken) {
  std::vector<std::string> reasons;
  for (const BrokenLibrary& one : broken) reasons.push_back(one.file + ": " + one.reason);
  const std::string& first = broken.front().file;
  const std::size_t slash = first.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : first.substr(0, slash);
  return {StatusCode::kUnsupported,
          std::string("use MPI: what is found as ") + flavour.title +
              " cannot be used: " + join(reasons, ", ") + "; try: LD_LIBRARY_PATH " +
              (folder.empty() ? "as " + std::string(flavour.title) + " wants it"
                              : "without " + folder) +
              ", or " + flavour.packages + " (Debian, Ubuntu) installed anew"};
}

std::string replaced_words(const std::string& why, const std::string& used) {
  const std::size_t advice = why.find("; try: ");
  return why.substr(0, advice) + "; this job uses " + used + " instead" +
         (advice == std::string::npos ? "" : why.substr(advice));
}

bool is_started_by_mpi(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"})
    if (environment.has(name)) return true;
  return false;
}

std::int64_t ranks_of_launcher(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const auto told = parse_integer(environment.get_or(name, ""))) return *told;
  return 0;
}

Status can_begin_together(const std::vector<MpiFacts>& facts) {
  const MpiFacts& first = facts.front();
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const MpiFacts& one = facts[rank];
    if (one.is_usable == 0)
      return {StatusCode::kUnsupported,
              words_of(rank, one) + ": " + printable(one.words, kMostWords)};
    if (one.library != first.library)
      return {StatusCode::kUnsupported, words_of(rank, one) + " has " + printable(one.library) +
                                            ", and rank 0 on " + printable(first.host) + " " +
                                            printable(first.library) +
                                            "; try: the same MPI on every host, or HVRUN_MPI=" +
                                            "openmpi or mpich where there are both"};
  }
  return Status::success();
}

Status place_in_world(const std::vector<MpiFacts>& facts, std::vector<int>* world_ranks) {
  if (Status status = can_begin_together(facts); !status.ok()) return status;
  std::set<int> seen;
  const MpiFacts& first = facts.front();
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const MpiFacts& one = facts[rank];
    const bool is_alone = one.size == 1 && facts.size() > 1;
    if (is_alone || one.size != first.size || !seen.insert(one.rank).second)
      return {StatusCode::kUnsupported,
              words_of(rank, one) + " is rank " + std::to_string(one.rank) + " of " +
                  std::to_string(one.size) + " for " + printable(one.library) +
                  ": this job's ranks are in no common MPI_COMM_WORLD; try: " + kHowToStart};
  }
  world_ranks->clear();
  for (const MpiFacts& one : facts) world_ranks->push_back(one.rank);
  return Status::success();
}

}  // namespace hv::runtime
