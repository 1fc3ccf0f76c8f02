// Allreduce and reducescatter by NCCL.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/backend/nccl/nccl_collective.h"
#include "runtime/collective/collective.h"

namespace hv::nccl {

// Between a tensor and its place in the bucket, where it is of the wire type.
struct Move {
  std::size_t offset = 0;           // of the place, in bytes
  std::int64_t count = 0;           // elements
  const std::byte* from = nullptr;  // of a way in; nullptr: zeros
  std::byte* to = nullptr;          // of a way out
};

// Where the pieces of a fused operation lie in its bucket, and which of them need not be moved. A
// bucket is the segments one behind the other, each at a multiple of 16 bytes, which is what a GPU
// reads best; what lies in the gaps is reduced with the rest and is nobody's. NCCL sees only its
// bytes, so each rank may have it where it likes: in a buffer, or, where its tensors lie like that
// already and without gaps, in the tensors themselves.
struct Packing {
  std::size_t bytes = 0;
  std::int64_t count = 0;            // elements of the wire type, those in gaps too
  const std::byte* input = nullptr;  // the bucket as it lies; nullptr: moves_in make it
  std::byte* output = nullptr;       // nullptr: moves_out make the results
  std::vector<Move> moves_in, moves_out;
};

// A segment that lies nowhere here (of a rank that has joined) gives zeros and takes nothing.
// scales_in, scales_out: all of it is moved on that way, for the kernels scale what they move.
// Pure.
Packing plan_packing(const runtime::CollectiveRequest& request, bool scales_in, bool scales_out);

// Where what is multiplied: into the addends by NCCL, or by the kernels that move tensors.
struct Scales {
  double by_nccl = 1;
  cuda::Scaling before, after;
  bool is_before() const { return before.factor != 1; }
  bool is_after() const { return after.factor != 1 || after.divisor != 1; }
};
Scales scales_of(const runtime::CollectiveRequest& request);

// One call for all tensors of a bucket, which is packed only where they do not lie like it already.
class Allreduce : public NcclCollective {
 public:
  Allreduce(std::shared_ptr<Lane> lane, runtime::CollectiveRequest given);

 protected:
  const char* what() const override { return "allreduce"; }
  std::size_t room_bytes() const override;
  bool is_in_window() const override { return is_in_window_; }
  Status pack(std::byte* room) override;
  Status launch() override;
  Status unpack() override;

 private:
  const Scales scales_;
  const bool is_in_window_;
  const Packing packing_;
  const runtime::ElementType wire_;
  std::byte* room_ = nullptr;  // the bucket; nullptr: in the tensors themselves
};

// One call for a tensor whose rows come out even. Else, or where the kernels scale, the rows of
// each rank are put into places of one size first.
class Reducescatter : public NcclCollective {
 public:
  Reducescatter(std::shared_ptr<Lane> lane, runtime::CollectiveRequest given);

 protected:
  const char* what() const override { return "reducescatter"; }
  std::size_t room_bytes() const override { return room_bytes_; }
  Status pack(std::byte* room) override;
  Status launch() override;
  Status unpack() override;

 private:
  // Of a segment, in elements.
  struct Share {
    std::int64_t own = 0;
    std::int64_t most = 0;        // of any rank
    bool is_even = true;          // the input's rows are the places
    std::byte* places = nullptr;  // one of `most` for each rank, and one for the result
  };
  Share share_of(std::size_t segment) const;
  std::size_t place_bytes(const Share& share) const;

  const Scales scales_;
  std::vector<Share> shares_;
  std::size_t room_bytes_ = 0;
};

}  // namespace hv::nccl
