// Exchange by PMI: Slurm's srun --mpi=pmi2, MPICH's and Intel's mpiexec.
// SPDX-License-Identifier: Apache-2.0
//
// PMI-1's words over the socket that the launcher has left in PMI_FD, which Slurm's pmi2 plugin
// takes as well; a server of PMI-2 alone is not served. Whoever else speaks on it (an MPI library
// in the same process) must not.
//   cmd=put kvsname=K key=hv-GATHER-RANK-PART value=HEX     cmd=barrier_in     cmd=get ...
#pragma once

#include <memory>
#include <string>

#include "src/base/fork_guarded_fd.h"
#include "src/rendezvous/exchange.h"

namespace hv {

class PmiExchange : public Exchange {
 public:
  // socket: PMI_FD; rank and size: PMI_RANK, PMI_SIZE.
  static Status open(UniqueFd socket, int rank, int size, std::unique_ptr<Exchange>* exchange);
  // Tells the launcher that this process ends in order.
  ~PmiExchange() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status gather(const std::string& mine, const WaitLimits& limits,
                std::vector<std::string>* all) override;

 private:
  PmiExchange(UniqueFd socket, int rank, int size)
      : socket_(std::move(socket)), rank_(rank), size_(size) {}
  Status start();
  // Says a line and hears the one that answers it, which must begin with cmd=answer.
  Status ask(const std::string& line, const std::string& answer, std::chrono::milliseconds timeout,
             std::string* heard);
  Status hear_line(std::chrono::milliseconds timeout, std::string* line);
  // All that a rank has for the others, in parts.
  Status say(const std::string& mine);
  Status hear(int rank, std::string* bytes);
  std::string key(int rank, std::size_t part) const;
  Status put(std::size_t part, const std::string& value);
  Status get(int rank, std::size_t part, std::string* value);

  ForkGuardedFd socket_;  // a child that is forked must not hold it
  const int rank_, size_;
  std::string space_;           // the launcher's name for this job's keys
  std::size_t most_value_ = 0;  // letters
  std::uint64_t gathers_ = 0;
  bool is_astray_ = false;  // the others meet elsewhere
  std::string unread_;
};

// The value of NAME=VALUE in a line of such words; empty when it is not there.
std::string pmi_value(const std::string& line, const std::string& name);

}  // namespace hv
