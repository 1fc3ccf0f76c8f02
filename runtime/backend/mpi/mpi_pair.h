// MpiPair: one end of a send and receive between two ranks, as messages of MPI's.
// SPDX-License-Identifier: Apache-2.0
//
// MPI has rooms of ours alone, never a tensor: what it has been given it cannot be made to leave
// alone (a receive that has been matched cannot be cancelled, no send can), and a transfer may be
// given up at any time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "runtime/backend/backend.h"
#include "runtime/backend/mpi/mpi_collective.h"

namespace hv::mpi {

// In pieces, two of them under way: while MPI has one the next is copied. Both ends know the size
// of the whole, so they cut alike.
class MpiPair : public MpiCollective {
 public:
  // lane: of all ranks of the job.
  MpiPair(std::shared_ptr<MpiLane> lane, runtime::PairRequest request);

 private:
  static constexpr std::size_t kUnderWay = 2;

  Status begin() override;
  Status go_on(bool* is_done) override;
  bool has_sent_all() const override { return pair_.sends && given_ == all(); }
  std::size_t overlap() const override { return begun_ == ended_ ? 0 : begun_ - ended_ - 1; }
  Status begin_piece();
  Status end_piece();
  std::size_t piece_at(std::size_t offset) const;  // its bytes
  std::size_t all() const { return static_cast<std::size_t>(pair_.bytes.count); }

  const runtime::PairRequest pair_;
  const std::size_t piece_bytes_;
  std::size_t given_ = 0, moved_ = 0;  // bytes that MPI was given, and has moved
  std::size_t begun_ = 0, ended_ = 0;  // pieces
  // A piece's by its number; behind the bytes the number of the transfer.
  std::array<std::byte*, kUnderWay> rooms_{};
};

}  // namespace hv::mpi
