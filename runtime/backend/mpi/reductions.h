// Allreduce and reducescatter by MPI.
// SPDX-License-Identifier: Apache-2.0
//
// Several tensors, or such as are compressed, travel packed in one piece of memory, which the
// prescaling is done on the way to, and the rest on the way back.
#pragma once

#include "runtime/backend/mpi/mpi_collective.h"
#include "runtime/device/kernels.h"

namespace hv::mpi {

class Reducing : public MpiCollective {
 public:
  Reducing(std::shared_ptr<MpiLane> lane, runtime::CollectiveRequest request);

 protected:
  // Into the wire's type, scaled.
  void pack(std::byte* to, const std::byte* from, std::size_t count) const;
  // Divided and scaled, into the tensor's type; from may be to, where nothing is compressed.
  void unpack(std::byte* to, std::byte* from, std::size_t count) const;
  bool is_plain() const { return request().prescale == 1 && wire_ == request().type; }
  std::size_t wire_bytes() const { return runtime::element_size(wire_); }
  MPI_Datatype datatype() const;
  // Folds what lies at `from` of all ranks to `to`, which is another place: MPI_IN_PLACE would have
  // to stand on all ranks or on none, and each has its own ways.
  Status allreduce(const std::byte* from, std::byte* to, std::size_t count);

  MPI_Op operation_ = MPI_OP_NULL;
  Status prepare();

 private:
  const runtime::Kernels& kernels_;
  const runtime::ElementType wire_;
  const runtime::Finish finish_;
};

// One tensor goes in pieces, so that a copy of it, where it cannot go as it lies, needs little
// memory; on all ranks in the same ones, though it lies so on some only.
class Allreduce : public Reducing {
 public:
  using Reducing::Reducing;

 private:
  Status begin() override;
  Status go_on(bool* is_done) override;
  bool has_asked_all() const override { return at_ + piece_ == elements_; }
  Status begin_packed();
  Status begin_piece();

  std::size_t elements_ = 0, at_ = 0, piece_ = 0;  // of all tensors; of those the next, and now
  std::byte* copied_ = nullptr;
  std::byte* folded_ = nullptr;  // of all tensors; nullptr: in the only one's own memory
};

class Reducescatter : public Reducing {
 public:
  using Reducing::Reducing;

 private:
  // Elements of a segment, those that go to a rank.
  struct Share {
    std::size_t begin = 0, count = 0;
  };
  Share share_of(std::size_t segment, int rank) const;
  Status begin() override;
  Status go_on(bool* is_done) override;
  Status fold(const std::byte* from, const std::vector<std::size_t>& counts);

  std::byte* share_ = nullptr;  // this rank's, of all segments
};

}  // namespace hv::mpi
