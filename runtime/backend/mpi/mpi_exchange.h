// Ranks of a communicator meet by MPI itself: what the launcher gave them MPI has taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "src/rendezvous/exchange.h"

namespace hv::mpi {

class MpiExchange : public Exchange {
 public:
  // communicator: as MpiPlugin::open_exchange has it. Blocks until all of its ranks have called.
  static Status open(const void* communicator, std::unique_ptr<Exchange>* made);
  ~MpiExchange() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status gather(const std::string& mine, const WaitLimits& limits,
                std::vector<std::string>* all) override;

 private:
  MpiExchange() = default;
  Status duplicate(const void* communicator);
  // Until it is done.
  Status await(MPI_Request request, const WaitLimits& limits);

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace hv::mpi
