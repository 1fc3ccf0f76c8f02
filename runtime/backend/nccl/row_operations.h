// Allgather, broadcast and alltoall by NCCL: what moves rows and computes with none, so by bytes,
// whatever the type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/backend/nccl/nccl_collective.h"

namespace hv::nccl {

// One call where all ranks give as much; else a broadcast of each rank's rows, as one group.
class Allgather : public NcclCollective {
 public:
  Allgather(std::shared_ptr<Lane> lane, runtime::CollectiveRequest given)
      : NcclCollective(std::move(lane), std::move(given)),
        output_(request().segments.front().output) {}

 protected:
  const char* what() const override { return "allgather"; }
  std::size_t room_bytes() const override;
  Status pack(std::byte* room) override {
    output_ = room;
    return Status::success();
  }
  Status launch() override;

 private:
  Status broadcast_rows(const std::byte* from, std::byte* to, std::size_t bytes, int root);
  // The own rows to the peer, and its rows from there.
  Status exchange_rows(const std::byte* own, std::size_t own_bytes, std::byte* to,
                       std::size_t bytes, int peer);

  std::byte* output_;  // nullptr: nobody wants it
};

class Broadcast : public NcclCollective {
 public:
  Broadcast(std::shared_ptr<Lane> lane, runtime::CollectiveRequest given);

 protected:
  const char* what() const override { return "broadcast"; }
  std::size_t room_bytes() const override;
  Status pack(std::byte* room) override;
  Status launch() override;

 private:
  std::vector<std::byte*> outputs_;
};

// A send to and a receipt from each rank, as one group, once the ranks have told each other on the
// host how many rows go from whom to whom.
class Alltoall : public NcclCollective {
 public:
  Alltoall(std::shared_ptr<Lane> lane, runtime::CollectiveRequest given, runtime::Backend& host);

 protected:
  const char* what() const override { return "alltoall"; }
  runtime::Progress get_ready() override;
  Status launch() override;

 private:
  std::size_t row_bytes() const;

  std::vector<std::int64_t> all_splits_;  // by sender, and by receiver there
  std::vector<std::int64_t> received_;
  std::unique_ptr<runtime::Collective> tell_;
  std::byte* output_ = nullptr;
};

}  // namespace hv::nccl
