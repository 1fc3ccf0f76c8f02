// Allreduce and reducescatter by NCCL.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/backend/nccl/nccl_collective.h"
#include "runtime/backend/nccl/packing.h"
#include "runtime/collective/collective.h"

namespace hv::nccl {

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
