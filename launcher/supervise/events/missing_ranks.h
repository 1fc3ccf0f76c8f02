// MissingRanks: ranks that ended with exit code 0 although others still wait for them.
// SPDX-License-Identifier: Apache-2.0
//
// In a job of plain programs such a rank is no loss. It is one as soon as ranks of other hosts wait
// for it: in hvrun_init (it never joined), or in MPI (it left without MPI_Init or MPI_Finalize).
// io_context thread only.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/supervise/job.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class MissingRanks {
 public:
  explicit MissingRanks(Job& job) : job_(job) {}

  // text: how it ended.
  void add_never_joined(int rank, std::string text);
  // Ended with exit code 0.
  void add_ended(const wire::Exited& exited);
  // Ranks wait in MPI for one that has ended. epoch: wire::kPmiEpoch or kPmixEpoch.
  void add_waiting(std::uint32_t epoch);
  // The job's fences have changed.
  void check_fences();
  // To the agents of all other hosts: their ranks do not wait for this one any more.
  void announce_end(int rank, const std::string& text);
  void announce_loss(int rank, HostId host, const std::string& reason);

 private:
  void announce_never_joined();
  void report_missing_in_mpi();

  Job& job_;
  std::vector<std::pair<int, std::string>> never_joined_;  // not announced yet
  std::set<std::uint32_t> waiting_epochs_;
  std::map<std::uint32_t, std::map<int, wire::MpiEnd>> out_of_mpi_;  // by epoch and rank
};

}  // namespace hv::launcher
