// PmiRendezvous: PMI-1 for the ranks of one host: the answer to each line, and when all ranks have
// reached a barrier. Pure; pmi_server.h does the I/O.
// SPDX-License-Identifier: Apache-2.0
//
// rank                                             agent
//   -> cmd=init pmi_version=1 pmi_subversion=1       <- cmd=response_to_init ... rc=0
//   -> cmd=get_maxes                                 <- cmd=maxes kvsname_max=.. keylen_max=..
//   -> cmd=get_appnum, get_universe_size, get_my_kvsname
//   -> cmd=put kvsname=S key=K value=V               <- cmd=put_result rc=0 msg=success
//   -> cmd=barrier_in                                <- cmd=barrier_out, once every rank has come
//   -> cmd=get kvsname=S key=K                       <- cmd=get_result rc=0 msg=success value=V
//   -> cmd=finalize                                  <- cmd=finalize_ack
//   -> cmd=abort exitcode=N                          nothing: the rank waits to be ended
// Each message is a line. A barrier is a fence of rank_rendezvous.h, in wire::kPmiEpoch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/agent/rendezvous/rank_rendezvous.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class PmiRendezvous {
 public:
  static constexpr std::size_t kMostLine = 4096;
  static constexpr std::size_t kMostKey = 64, kMostValue = 1024;  // bytes, as in MPICH

  // space: the name of the job's key space. applications: by rank of this host, the index of the
  // program that it runs.
  PmiRendezvous(wire::PmiWorld world, std::string space,
                std::map<std::uint32_t, std::uint32_t> applications);

  // The answer to the rank, with its line end; empty: none yet. Nothing: the rank has broken the
  // protocol.
  std::optional<std::string> answer(std::uint32_t rank, std::string_view line);
  // The exit code with which the rank asked to be ended; never 0.
  std::optional<int> abort_of(std::uint32_t rank) const;
  // The rank's process is gone.
  wire::MpiEnd note_end(std::uint32_t rank);
  bool is_waiting(std::uint32_t rank) const { return rendezvous_.is_waiting(rank); }
  bool has_waiting_rank() const;
  // A rank waits in the first barrier since its init: not all ranks have begun.
  bool is_beginning() const;
  // Ranks that have begun, while not all of the job have reached the first barrier.
  std::vector<std::uint32_t> beginning() const;
  // A rank has ended, and every rank that reaches a barrier waits for it.
  bool has_missing_rank() const { return has_missing_rank_; }
  // Barriers that all ranks of this host have reached, each returned once.
  std::vector<wire::FenceIn> complete() { return rendezvous_.complete(); }
  // The ranks that go on; each of them gets barrier_answer().
  std::vector<std::uint32_t> pass(const wire::FenceOut& out);
  static const char* barrier_answer() { return "cmd=barrier_out\n"; }

 private:
  using Fields = std::map<std::string, std::string, std::less<>>;
  std::string init(std::uint32_t rank, const Fields& fields);
  std::string put(std::uint32_t rank, const Fields& fields);
  std::string get(const Fields& fields) const;
  std::string finalize(std::uint32_t rank);
  std::optional<std::string> answer_joined(std::uint32_t rank, const Fields& fields);

  const wire::PmiWorld world_;
  const std::string space_;
  const std::map<std::uint32_t, std::uint32_t> applications_;
  RankRendezvous rendezvous_;
  bool has_missing_rank_ = false;
  std::map<std::uint32_t, int> aborts_;
  std::map<std::uint32_t, std::uint32_t> barriers_;  // by rank: how many since its init
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace hv::launcher
