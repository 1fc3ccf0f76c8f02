// What moves rows or bytes as they are, by MPI: allgather, broadcast, alltoall; and the barrier.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/backend/mpi/mpi_collective.h"

namespace hv::mpi {

class Allgather : public MpiCollective {
 public:
  using MpiCollective::MpiCollective;

 private:
  Status begin() override;
  Status go_on(bool* /*is_done*/) override { return Status::success(); }
  Status gather_parts(const std::byte* input, std::byte* output);
};

class Broadcast : public MpiCollective {
 public:
  using MpiCollective::MpiCollective;

 private:
  Status begin() override;
  Status go_on(bool* is_done) override;

  std::byte* packed_ = nullptr;  // all of it
};

// Ranks tell each other how much comes; then the rows travel as messages, for other collectives may
// have begun meanwhile, in another order on each rank.
class Alltoall : public MpiCollective {
 public:
  using MpiCollective::MpiCollective;

 private:
  Status begin() override;
  Status go_on(bool* is_done) override;
  Status send_rows(std::byte* room);

  int tag_ = 0;
  bool is_told_ = false;
  std::shared_ptr<std::vector<std::int64_t>> received_;  // rows, by rank
};

class Barrier : public MpiCollective {
 public:
  using MpiCollective::MpiCollective;

 private:
  Status begin() override;
  Status go_on(bool* /*is_done*/) override { return Status::success(); }
};

}  // namespace hv::mpi
