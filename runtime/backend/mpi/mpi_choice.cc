// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_choice.h"

#include <algorithm>
#include <set>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

constexpr const char* kHowToStart =
    "hvrun --wire-mpi, hvrun --mpi, mpirun, or srun --mpi=pmix, which start ranks that an MPI "
    "connects";

std::string words_of(std::size_t rank, const MpiFacts& facts) {
  return "rank " + std::to_string(rank) + " on " + printable(facts.host);
}

}  // namespace

const std::vector<MpiFlavour>& mpi_flavours() {
  static const std::vector<MpiFlavour> all{
      {"openmpi", "libhvrun-openmpi.so", {"libmpi.so.40", "libmpi.so.80"}},
      {"mpich", "libhvrun-mpich.so", {"libmpich.so.12", "libmpi.so.12"}}};
  return all;
}

std::vector<const MpiFlavour*> mpi_order(const std::string& wanted, const std::string& held,
                                         const Environment& environment) {
  std::vector<const MpiFlavour*> order;
  // hvrun itself tells ranks both ways.
  const bool speaks_pmix = environment.has("PMIX_NAMESPACE");
  const bool speaks_pmi = environment.has("PMI_RANK") || environment.has("PMI_FD");
  const std::string first = !wanted.empty()                           ? wanted
                            : !held.empty()                           ? held
                            : environment.has("OMPI_COMM_WORLD_SIZE") ? "openmpi"
                            : speaks_pmix == speaks_pmi               ? ""
                            : speaks_pmix                             ? "openmpi"
                                                                      : "mpich";
  for (const MpiFlavour& one : mpi_flavours())
    if (first.empty() || first == one.name) order.push_back(&one);
  return order;
}

bool is_started_by_mpi(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"})
    if (environment.has(name)) return true;
  return false;
}

std::int64_t ranks_of_launcher(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const auto told = parse_integer(environment.get_or(name, ""))) return *told;
  return 0;
}

std::vector<std::string> backend_words(const std::string& list) {
  std::vector<std::string> words;
  for (const std::string_view word : split(list, ','))
    if (!trim(word).empty()) words.emplace_back(trim(word));
  return words;
}

bool names_mpi(const std::string& list) {
  const auto words = backend_words(list);
  return std::find(words.begin(), words.end(), "mpi") != words.end();
}

Status can_begin_together(const std::vector<MpiFacts>& facts) {
  const MpiFacts& first = facts.front();
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const MpiFacts& one = facts[rank];
    if (one.is_usable == 0)
      return {StatusCode::kUnsupported, words_of(rank, one) + ": " + printable(one.words)};
    if (std::string(one.library) != first.library)
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
