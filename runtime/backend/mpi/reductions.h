// Allreduce and reducescatter by MPI.
// SPDX-License-Identifier: Apache-2.0
//
// Several tensors, or such as are compressed, travel packed in one piece of memory, which the
// prescaling is done on the way to, and the rest on the way back.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>

#include "runtime/backend/mpi/mpi_collective.h"
#include "runtime/device/element_type.h"
#include "runtime/device/kernels.h"
#include "src/base/status.h"

namespace hv::mpi {

// MPI's types and operations for those of tensors.
// 16-bit and 8-bit floats and bool go as integers of their width: only operations of ours fold
// them.
MPI_Datatype datatype_of(runtime::ElementType type);

// Of elements, not Adasum; an average is a sum. MPI's own where that gives what every backend
// gives; else it folds by the kernels. Made at first use and kept.
Status operation_of(runtime::ElementType type, runtime::Reduction reduction, MPI_Op* operation);

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

// In pieces, two of them under way: what is packed and folded stays in the caches, and while MPI
// has one the next is packed. They are the same on all ranks; whether MPI takes one from a tensor
// as it lies, or a copy of it, is each rank's own.
class Allreduce : public Reducing {
 public:
  using Reducing::Reducing;

 private:
  static constexpr std::size_t kUnderWay = 2;

  // Where the next element is, of all segments one after the other.
  struct Place {
    std::size_t segment = 0, offset = 0;
  };
  // Memory of a piece, taken when it is first wanted.
  struct Rooms {
    std::byte* packed = nullptr;
    std::byte* folded = nullptr;
  };

  Status begin() override;
  Status go_on(bool* is_done) override;
  bool has_asked_all() const override { return given_ == elements_; }
  std::size_t overlap() const override { return begun_ == ended_ ? 0 : begun_ - ended_ - 1; }
  Status begin_piece();
  void end_piece();
  // On to the next segment, from the end of one.
  void settle(Place* at) const;
  // Calls part(segment, offset, count) for what lies in each from `at`, and moves it on.
  template <class Part>
  void for_each_of(std::size_t count, Place* at, Part&& part) const;
  // The segment that has all of `count` elements from `at`; else nullptr.
  const runtime::Segment* only_segment(std::size_t count, const Place& at) const;
  std::byte* room(std::byte** kept);

  std::size_t elements_ = 0, piece_ = 0;  // of all segments, of a piece
  std::size_t given_ = 0, folded_ = 0;    // elements that MPI was given, and has folded
  std::size_t begun_ = 0, ended_ = 0;     // pieces
  Place next_, back_;                     // to be packed, to be unpacked
  std::array<Rooms, kUnderWay> rooms_;    // a piece's by its number
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
