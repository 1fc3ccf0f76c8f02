// Ranks of a communicator meet by MPI itself: what the launcher gave them MPI has taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/rendezvous/exchange.h"

namespace hv::mpi {

class MpiExchange : public Exchange {
 public:
  // As MpiPlugin::open_exchange has it.
  static Status open(const void* communicator, const WaitLimits& limits,
                     std::function<void(const std::string&)> warn, std::unique_ptr<Exchange>* made);
  ~MpiExchange() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status gather(const std::string& mine, const WaitLimits& limits,
                std::vector<std::string>* all) override;

 private:
  explicit MpiExchange(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}
  Status duplicate(const void* communicator, const WaitLimits& limits);
  // Until it is done. Else MPI may write for ever to where it was told to.
  Status await(MPI_Request request, const WaitLimits& limits);

  const std::function<void(const std::string&)> warn_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace hv::mpi
