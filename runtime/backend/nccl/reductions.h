// Allreduce and reducescatter by NCCL.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/backend/nccl/nccl_collective.h"
#include "runtime/backend/nccl/packing.h"

namespace hv::nccl {

// One call for all tensors of a bucket, which is packed only where they do not lie like it already.
class Allreduce : public NcclCollective {
 public:
  Allreduce(std::shared_ptr<Lane> lane, runtime::CollectiveRequest given);

 protected:
  const char* what() const override { return "allreduce"; }
  Status before() override;
  Status launch() override;
  Status after() override;

 private:
  const Packing packing_;
  std::byte* room_ = nullptr;  // the bucket; nullptr: in the tensors themselves
};

// One call for a tensor whose rows come out even; else each rank's rows are put into places of one
// size first.
class Reducescatter : public NcclCollective {
 public:
  using NcclCollective::NcclCollective;

 protected:
  const char* what() const override { return "reducescatter"; }
  Status before() override;
  Status launch() override;
  Status after() override;

 private:
  // Of a segment, in elements.
  struct Share {
    std::int64_t own = 0;
    std::int64_t most = 0;        // of any rank
    std::byte* places = nullptr;  // a place of `most` for each rank; nullptr: the input itself
  };
  Share share_of(std::size_t segment) const;
  Status fill_places(std::size_t segment, const Share& share);

  std::vector<Share> shares_;
};

}  // namespace hv::nccl
